package redisproc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockDir creates dir if missing and takes the lock that two servers never
// share, without waiting for it. The error wraps ErrDirInUse when it is taken.
//
// The lock belongs to the open file, not to the process: it lasts until every
// process that inherited the file has ended or closed it. A server that lives
// on after its parent was killed thus still keeps others out.
func lockDir(dir string) (*os.File, error) {
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
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return file, nil
	}
	file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("%w %s: stop the other one, or choose another data directory", ErrDirInUse, dir)
	}
	return nil, fmt.Errorf("redisproc: lock on %s: %w", file.Name(), err)
}
