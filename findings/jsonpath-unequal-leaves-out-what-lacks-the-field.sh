#!/bin/sh
# client-go 0.37.2, jsonpath as kubectl uses it (missing keys allowed). The guess: `!=` selects the items without the field too, as a label selector's does, and what
# the language doesn't know, such as `in` and `not`, is an error. An item that lacks the field is neither equal nor unequal, and the
# words behind or before the field are ignored, so that such a filter selects everything that was to be filtered.
. "$(dirname "$0")/lib/program.sh"
program k8s.io/client-go@v0.37.2 <<'GO'
package main

import (
	"fmt"
	"os"

	"k8s.io/client-go/util/jsonpath"
)

func main() {
	items := []any{map[string]any{"name": "a", "number": 1}, map[string]any{"name": "b", "number": 2}, map[string]any{"name": "none"}}
	for _, filter := range []string{`@.number==1`, `@.number!=1`, `@.number`, `not @.number`, `@.name in [1]`, `@.name=="a" or @.name=="b"`, `@.name=="a" && @.name=="b"`} {
		path := jsonpath.New("finding").AllowMissingKeys(true)
		fmt.Printf("%s: ", filter)
		err := path.Parse(`{[?(` + filter + `)].name}`)
		if err == nil {
			err = path.Execute(os.Stdout, items)
		}
		if err != nil {
			fmt.Print("error")
		}
		fmt.Println()
	}
}
GO
expect <<'OUT'
@.number==1: a
@.number!=1: b
@.number: a b
not @.number: a b none
@.name in [1]: a b none
@.name=="a" or @.name=="b": error
@.name=="a" && @.name=="b": error
OUT
