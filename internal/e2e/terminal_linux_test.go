package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/countersign-otel/countersign/examples/stack"
)

// TestDemoInATerminal is make demo with somebody in front of it: the page at
// the address that it ends with answers until they press Enter, and then
// nothing is left.
func TestDemoInATerminal(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tree, temporary := copyTree(t), t.TempDir()
	person, terminal := openTerminal(t)
	command := exec.CommandContext(ctx, buildDemo(ctx, t), "run")
	command.Dir, command.Env = tree, append(os.Environ(), "CI=", "TMPDIR="+temporary)
	command.Stdin, command.Stdout, command.Stderr = terminal, terminal, terminal
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if err := terminal.Close(); err != nil { // the program has its own
		t.Fatal(err)
	}
	key, address := readAddress(t, person)
	host, path, _ := strings.Cut(strings.TrimPrefix(address, "http://"), "/")
	if "/"+path != firstAction {
		t.Errorf("the page is %s, not %s", path, firstAction)
	}
	shown := &stack.Stack{Options: stack.Options{Addresses: stack.Addresses{API: host}}, Keys: map[string]string{"viewer": key}}
	page, err := shown.ReadPage(ctx, "/"+path)
	if err != nil || !strings.Contains(page, "all 4 expected effects observed") {
		t.Errorf("the page: %v\n%s", err, page)
	}
	if _, err := fmt.Fprintln(person); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Fatal(err)
	}
	if response, err := http.Get(address); err == nil {
		_ = response.Body.Close()
		t.Errorf("%s still answers", address)
	}
	left, err := os.ReadDir(temporary)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// readAddress reads what the demo says up to the address that it ends with.
func readAddress(t *testing.T, person *os.File) (key, address string) {
	t.Helper()
	var said strings.Builder
	for lines := bufio.NewScanner(person); address == "" && lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if _, secret, ok := strings.Cut(lines.Text(), "sign in with"); ok {
			key = strings.TrimSpace(secret)
		}
		if _, page, ok := strings.Cut(lines.Text(), "its page"); ok {
			address = strings.TrimSpace(page)
		}
	}
	if key == "" || address == "" {
		t.Fatalf("no address of a page:\n%s", said.String())
	}
	return key, address
}

// openTerminal opens both ends of a terminal: a person's and a program's.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = person.Close() })
	control := func(request uintptr, number *int32) {
		t.Helper()
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, person.Fd(), request, uintptr(unsafe.Pointer(number))); errno != 0 {
			t.Fatal(errno)
		}
	}
	var locked, number int32
	control(syscall.TIOCSPTLCK, &locked)
	control(syscall.TIOCGPTN, &number)
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return person, program
}
