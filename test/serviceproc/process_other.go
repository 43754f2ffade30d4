//go:build !linux

package serviceproc

import "syscall"

// endWithParent does nothing: only Linux can tie a process to its parent's life.
func endWithParent(*syscall.SysProcAttr) {}
