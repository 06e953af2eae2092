package sqlite

import (
	"context"
	"errors"
	"os"
	"time"
)

// queue lines up the processes that want to write one file. SQLite lets those
// that wait ask again and again, in growing intervals, so that a process that
// writes without a pause keeps the others out for seconds. Here a process
// enters the queue, waits for the write lock in it, and leaves it when it has
// the lock: whoever just wrote has to enter behind those that wait.
//
// The queue is an advisory lock on a file beside the database. It ends with its
// process, and decides nothing: without it there is only less order.
type queue struct{ file *os.File }

// askEvery is how often the queue, and at its head the write lock, is asked for.
const askEvery = time.Millisecond

// openQueue opens or makes the file. Reading rights are enough for the lock.
func openQueue(path string) (*queue, error) {
	file, err := os.OpenFile(path+"-queue", os.O_RDONLY|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	return &queue{file}, nil
}

func (q *queue) close() error {
	if q == nil {
		return nil
	}
	return q.file.Close()
}

// errImpatient: patience ended in the queue.
var errImpatient = errors.New("other processes are writing")

// wait enters the queue and calls take until that does not say busy, and leaves
// the queue. It fails when patience or ctx ends before. Without a queue,
// everybody is at its head.
func (q *queue) wait(ctx context.Context, patience time.Duration, take func() (busy bool)) error {
	end := time.NewTimer(patience)
	defer end.Stop()
	entered := q == nil
	for {
		if !entered {
			var err error
			if entered, err = lock(q.file); err != nil {
				return err
			}
			if entered {
				defer func() { _ = unlock(q.file) }()
			}
		}
		if entered && !take() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end.C:
			return errImpatient
		case <-time.After(askEvery):
		}
	}
}
