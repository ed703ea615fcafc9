#!/bin/sh
# gopkg.in/evanphx/json-patch.v4 4.13.0, which the API server applies JSON patches with. RFC 6902 says that replace and test need a target that exists,
# and that numbers are compared by value. The guess: so it is. A replace of a key that isn't there adds it (but an element past the
# end of an array is refused), a test for null succeeds where nothing is, and 1 is not 1.0.
. "$(dirname "$0")/lib/program.sh"
program gopkg.in/evanphx/json-patch.v4@v4.13.0 <<'GO'
package main

import (
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

func main() {
	for _, operation := range []string{
		`{"op":"replace","path":"/b","value":2}`,
		`{"op":"replace","path":"/list/0","value":2}`,
		`{"op":"test","path":"/b","value":null}`,
		`{"op":"test","path":"/a","value":1.0}`,
		`{"op":"remove","path":"/b"}`,
	} {
		patch, err := jsonpatch.DecodePatch([]byte("[" + operation + "]"))
		if err != nil {
			panic(err)
		}
		out, err := patch.Apply([]byte(`{"a":1,"list":[]}`))
		fmt.Println(operation, string(out), err != nil)
	}
}
GO
expect <<'OUT'
{"op":"replace","path":"/b","value":2} {"a":1,"b":2,"list":[]} false
{"op":"replace","path":"/list/0","value":2}  true
{"op":"test","path":"/b","value":null} {"a":1,"list":[]} false
{"op":"test","path":"/a","value":1.0}  true
{"op":"remove","path":"/b"}  true
OUT
