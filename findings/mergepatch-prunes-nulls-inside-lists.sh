#!/bin/sh
# gopkg.in/evanphx/json-patch.v4 4.13.0, which the API server applies merge patches with. RFC 7386 replaces an array as it is: nulls in it are values. The
# guess: a list in a merge patch arrives as it was sent. Elements that are null arrive; null members of objects in the list are
# taken out, so that no merge patch can set a nullable field in a list to null.
. "$(dirname "$0")/lib/program.sh"
program gopkg.in/evanphx/json-patch.v4@v4.13.0 <<'GO'
package main

import (
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

func main() {
	for _, patch := range []string{`{"l":[null]}`, `{"l":[{"a":null,"b":1}]}`, `{"l":[[{"a":null}]]}`} {
		out, err := jsonpatch.MergePatch([]byte(`{}`), []byte(patch))
		if err != nil {
			panic(err)
		}
		fmt.Println(patch, "->", string(out))
	}
}
GO
expect <<'OUT'
{"l":[null]} -> {"l":[null]}
{"l":[{"a":null,"b":1}]} -> {"l":[{"b":1}]}
{"l":[[{"a":null}]]} -> {"l":[[{}]]}
OUT
