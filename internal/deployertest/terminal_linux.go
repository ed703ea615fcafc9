package deployertest

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"unsafe"
)

// Terminal makes a pseudo terminal: what is written to tty can be read from
// reader.
func Terminal(t *testing.T) (reader, tty *os.File) {
	t.Helper()
	reader, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	t.Cleanup(func() { reader.Close() })
	var unlocked, number int32
	control(t, reader, syscall.TIOCSPTLCK, &unlocked)
	control(t, reader, syscall.TIOCGPTN, &number)
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	t.Cleanup(func() { tty.Close() })
	return reader, tty
}

func control(t *testing.T, f *os.File, request uintptr, value *int32) {
	t.Helper()
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(unsafe.Pointer(value))); errno != 0 {
		t.Fatalf("ioctl %x: %v", request, errno)
	}
}
