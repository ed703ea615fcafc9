package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// poll is the pause between two looks at something that can't be waited for.
const poll = 50 * time.Millisecond

// errLocked is returned by tryLock when somebody else holds the lock.
var errLocked = errors.New("locked by another process")

// tryLock takes the exclusive lock on the file at path, which it creates. The
// lock ends with the returned file, that is with this process at the latest.
// It returns errLocked if another process holds it, shared or exclusively.
func tryLock(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("creating the cluster's directory: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening a lock file: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errLocked
	}
	return nil, fmt.Errorf("locking %s: %w", path, err)
}

// lock waits for the exclusive lock on the file at path.
func lock(ctx context.Context, path string) (*os.File, error) {
	for {
		f, err := tryLock(path)
		if !errors.Is(err, errLocked) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(poll):
		}
	}
}

// alive reports whether a supervisor runs in the directory.
func (l layout) alive() (bool, error) {
	if _, err := os.Stat(l.aliveLock()); os.IsNotExist(err) {
		return false, nil
	}
	f, err := tryLock(l.aliveLock())
	if errors.Is(err, errLocked) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	f.Close()
	return false, nil
}
