// Package startheap keeps Go from collecting garbage while the packages of the program are initialised. There
// is hardly any then, and marking what stays took a sixth of a short command's processor time.
//
// It is for the main package alone, and imports only runtime: of the packages whose imports are initialised, Go
// begins with the first one by import path (https://go.dev/ref/spec#Program_initialization), so this one comes
// before nearly all libraries.
package startheap

import "runtime"

// Size is how much memory counts as in use from the start. With Go's 100 percent, the first collection is when
// as much again is in use. Nothing is written to it, so it takes no memory of the machine.
const Size = 16 << 20

var reserved = make([]byte, Size)

// Release lets the next collection take the memory.
func Release() {
	runtime.KeepAlive(reserved)
	reserved = nil
}
