package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"github.com/xrash/smetrics"

	"deployer/internal/program"
)

// destructive are flags that delete, override or skip a check. They are never suggested for a
// mistyped word, because suggestions are pasted without thought.
var destructive = []string{
	"adopt", "allow-chart-mismatch", "allow-partial-discovery", "allow-recreate", "allow-stored-hooks", "cascade", "conflicts", "crds", "disable-openapi-validation", "field-validation", "force-update",
	"gate", "insecure", "insecure-skip-tls-verify", "kube-insecure-skip-tls-verify", "no-hooks", "pass-credentials", "plain-http", "prune-kind", "replace",
	"reset-values", "revert-manual-changes", "skip-crds", "skip-schema-validation", "take-ownership", "take-ownership-from", "takeover-pending", "yes",
}

func isDestructive(f cli.Flag) bool { return slices.Contains(destructive, f.Names()[0]) }

// suggest adds the nearest of the candidates to an error about a word that
// nobody knows. Words that are nothing alike are not suggested.
func suggest(err error, word string, candidates []string) error {
	best, distance := "", (len(strings.TrimLeft(word, "-"))+2)/3+1
	for _, c := range candidates {
		d := smetrics.WagnerFischer(word, c, 1, 1, 1) // letters to insert, delete or replace
		if d < distance || d == distance && c < best {
			best, distance = c, d
		}
	}
	if best == "" {
		return err
	}
	return program.WithHint(err, fmt.Sprintf("did you mean %s?", best))
}
