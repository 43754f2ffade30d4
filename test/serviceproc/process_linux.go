package serviceproc

import "syscall"

// endWithParent has the kernel kill the process when the thread that started it ends, even if its parent was killed.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
