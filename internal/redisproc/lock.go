package redisproc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockPatience is how long Start waits for another server to leave the data
// directory: one whose parent was killed ends by itself, but not at once.
const lockPatience = 3 * time.Second

// lockDir creates dir if missing and takes the lock that two servers never
// share. The error wraps ErrDirInUse when it stays taken for lockPatience.
//
// The lock belongs to the open file, not to the process: it lasts until every
// process that inherited the file has ended or closed it. A server that lives
// on after its parent was killed thus still keeps others out.
func lockDir(ctx context.Context, dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("redisproc: data directory: %w", err)
	}
	// The file that Redis appends to is readable by all: only the directory keeps others from it.
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("redisproc: data directory: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("redisproc: data directory: %w", err)
	}
	err = awaitLock(ctx, int(file.Fd()))
	if err == nil {
		return file, nil
	}
	file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("%w %s: stop the other one, or choose another data directory", ErrDirInUse, dir)
	}
	return nil, fmt.Errorf("redisproc: lock on %s: %w", file.Name(), err)
}

// awaitLock takes the lock as soon as it is free. Errors: EWOULDBLOCK when it stays taken, and why the context ended.
func awaitLock(ctx context.Context, fd int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, lockPatience, syscall.EWOULDBLOCK)
	defer cancel()
	return poll(ctx, pollPause, func() (bool, error) {
		err := syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return false, nil
		}
		return true, err
	})
}
