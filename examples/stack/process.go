package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// stopTimeout is how long a process may finish what it holds.
const stopTimeout = 10 * time.Second

// process is one running program of ours with its log.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed when it has ended
}

// launch starts a program in a session of its own, so that a Ctrl-C of the
// terminal reaches only us, who end it in order.
func launch(name, log string, detached bool, environment []string, command ...string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the child has its own
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), environment...)
	cmd.Dir = filepath.Dir(log)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = attributes(detached)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p := &process{name: name, cmd: cmd, log: log, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended stands in ProcessState
		close(p.done)
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// stop asks the process to finish, and ends it when it does not.
func (p *process) stop() error {
	if p == nil {
		return nil
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-p.done:
		return nil
	case <-time.After(stopTimeout):
	}
	p.kill()
	return fmt.Errorf("%s did not end within %s and was killed; its log: %s", p.name, stopTimeout, p.log)
}

// kill ends the process without letting it finish anything.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// await polls until ready says nil, the process ends or ctx does. The error
// holds what the process said last.
func (p *process) await(ctx context.Context, ready func(context.Context) error) error {
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended (%s) before it was ready:\n%s", p.name, p.cmd.ProcessState, p.tail())
		case <-ctx.Done():
			return fmt.Errorf("%s did not become ready: %w (%w):\n%s", p.name, err, ctx.Err(), p.tail())
		case <-tick.C:
		}
	}
}

// tail is the end of the log.
func (p *process) tail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	const most = 4000
	if len(text) > most {
		text = append([]byte("..."), text[len(text)-most:]...)
	}
	return string(text)
}

// runTool runs one of our commands to its end and returns what it printed.
func runTool(ctx context.Context, environment []string, command ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), environment...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("%v: exit code %d: %s", command, exit.ExitCode(), exit.Stderr)
	}
	return out, err
}
