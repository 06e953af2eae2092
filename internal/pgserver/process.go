package pgserver

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// process is a child and what became of it.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the child has ended
	err  error         // how it ended; read after done
}

func startProcess(path string, args []string, dir, logFile string, attributes *syscall.SysProcAttr) (*process, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has its own handle
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = dir, log, log, attributes
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// end sends the signal and waits until the process is gone.
func (p *process) end(signal syscall.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("process %d did not end within %s after %s and was killed", p.cmd.Process.Pid, stopTimeout, signal)
	}
}

// watchdog is a shell that outlives this process by a moment. It reads from a pipe whose other end
// only we hold: when we end, for whatever reason, it reads end of file, ends the server and removes
// its folder. It is also the ordinary way to remove the folder, so that it is never untested.
type watchdog struct {
	cmd  *exec.Cmd
	pipe io.Closer
}

const watchdogScript = `
read -r _
if read -r pid 2>/dev/null <"$1/data/postmaster.pid"; then
	kill -QUIT "$pid" 2>/dev/null
	i=0
	while kill -0 "$pid" 2>/dev/null; do
		i=$((i + 1))
		[ "$i" -gt 100 ] && kill -KILL "$pid" 2>/dev/null
		[ "$i" -gt 110 ] && break
		sleep 0.1
	done
fi
rm -rf "$1"
`

func startWatchdog(dir string) (*watchdog, error) {
	cmd := exec.Command("/bin/sh", "-c", watchdogScript, "pgserver-watchdog", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Dir = "/"
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &watchdog{cmd: cmd, pipe: pipe}, nil
}

func (w *watchdog) finish() error {
	if err := w.pipe.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	if err := w.cmd.Wait(); err != nil {
		return fmt.Errorf("remove the server's folder: %w", err)
	}
	return nil
}
