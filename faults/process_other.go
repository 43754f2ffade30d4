//go:build !linux

package faults

import "syscall"

// endWithParent does nothing: only Linux can tie a process to its parent's life.
func endWithParent(*syscall.SysProcAttr) {}

// openFiles returns 0: only Linux says it in /proc.
func openFiles(int) (int, error) { return 0, nil }
