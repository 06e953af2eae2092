//go:build unix && !linux

package stack

import "syscall"

func attributes(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
