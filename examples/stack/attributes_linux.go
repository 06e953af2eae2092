package stack

import "syscall"

// attributes: where the kernel offers it, our processes end with us, also when
// we are killed.
func attributes(detached bool) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true}
	if !detached {
		a.Pdeathsig = syscall.SIGTERM
	}
	return a
}
