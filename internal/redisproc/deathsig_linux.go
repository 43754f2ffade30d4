package redisproc

import "syscall"

// endWithParent has the kernel send SIGTERM to the process when the thread that
// started it ends, even if its parent was killed.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }
