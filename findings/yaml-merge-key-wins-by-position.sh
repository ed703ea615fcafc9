#!/bin/sh
# sigs.k8s.io/yaml 1.6.0 (what kubectl, Helm and API machinery read with) and go.yaml.in/yaml/v3 3.0.5. A mapping has a key of its own and merges
# another mapping (<<) that has it too. The guess: its own key wins, wherever it stands. In sigs.k8s.io/yaml the merged one wins if the
# merge is written after it, without a word; and its strict reading, meant to find keys that are written twice, refuses the
# file in both orders.
. "$(dirname "$0")/lib/program.sh"
program sigs.k8s.io/yaml@v1.6.0 go.yaml.in/yaml/v3@v3.0.5 <<'GO'
package main

import (
	"fmt"

	yaml3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

func main() {
	for _, doc := range []string{"{<<: *base, k: own}", "{k: own, <<: *base}"} {
		doc = "base: &base {k: merged}\nuse: " + doc
		var v1, v3, strict map[string]map[string]any
		if err := yaml.Unmarshal([]byte(doc), &v1); err != nil {
			panic(err)
		}
		if err := yaml3.Unmarshal([]byte(doc), &v3); err != nil {
			panic(err)
		}
		fmt.Println("sigs.k8s.io/yaml:", v1["use"]["k"], "- yaml/v3:", v3["use"]["k"], "- strict refuses:", yaml.UnmarshalStrict([]byte(doc), &strict) != nil)
	}
}
GO
expect <<'OUT'
sigs.k8s.io/yaml: own - yaml/v3: own - strict refuses: true
sigs.k8s.io/yaml: merged - yaml/v3: own - strict refuses: true
OUT
