#!/bin/sh
# Masterminds/semver 3.5.0, which reads the versions of Helm's dependencies, `kubeVersion` and semverCompare. The guess: 1.2 stands for 1.2.0, so that 1.2.5 is
# greater than, unequal to and not at most 1.2. A version of two parts stands for all of 1.2: `>1.2` begins at 1.3.0, `<=1.2` ends
# before it, and `!=1.2` excludes each patch. With the third part they say what was guessed.
. "$(dirname "$0")/lib/program.sh"
program github.com/Masterminds/semver/v3@v3.5.0 <<'GO'
package main

import (
	"fmt"

	"github.com/Masterminds/semver/v3"
)

func main() {
	for _, operator := range []string{">", "<=", "!=", "="} {
		for _, of := range []string{"1.2", "1.2.0"} {
			constraint, err := semver.NewConstraint(operator + of)
			if err != nil {
				panic(err)
			}
			fmt.Printf("1.2.5 %s %s: %v\n", operator, of, constraint.Check(semver.MustParse("1.2.5")))
		}
	}
}
GO
expect <<'OUT'
1.2.5 > 1.2: false
1.2.5 > 1.2.0: true
1.2.5 <= 1.2: true
1.2.5 <= 1.2.0: false
1.2.5 != 1.2: false
1.2.5 != 1.2.0: true
1.2.5 = 1.2: true
1.2.5 = 1.2.0: false
OUT
