package diff

import (
	"strings"

	"deployer/internal/lcs"
)

// A gap is a stretch in which two sequences have nothing in common:
// a[a0:a1] was replaced by b[b0:b1].
type gap struct{ a0, a1, b0, b1 int }

// maxComparisons bounds the work of comparing two sequences: the product of their lengths.
const maxComparisons = 4_000_000

// gaps finds where two sequences of n and m elements differ. Of sequences too long to be
// compared, all between the equal beginning and the equal end differs.
func gaps(n, m int, same func(i, j int) bool) []gap {
	var out []gap
	a0, b0 := 0, 0
	for i, j := range append(lcs.Pairs(n, m, maxComparisons, same), m) {
		if j < 0 {
			continue
		}
		if i > a0 || j > b0 {
			out = append(out, gap{a0, i, b0, j})
		}
		a0, b0 = i+1, j+1
	}
	return out
}

// Unified compares two texts line by line and returns what differs with
// context lines around it. Each line begins with "+", "-" or a blank; "..."
// stands for lines left out. Texts that differ in nothing give nothing.
func Unified(before, after string, context int) []string {
	a, b := split(before), split(after)
	context = max(context, 0)
	var out []string
	shown := 0 // lines of a that have been dealt with
	all := gaps(len(a), len(b), func(i, j int) bool { return a[i] == b[j] })
	for k, g := range all {
		from := max(shown, g.a0-context)
		if from > shown {
			out = append(out, "...")
		}
		out = append(out, prefixed(" ", a[from:g.a0])...)
		out = append(out, prefixed("-", a[g.a0:g.a1])...)
		out = append(out, prefixed("+", b[g.b0:g.b1])...)
		until := min(len(a), g.a1+context)
		if k+1 < len(all) {
			until = min(until, all[k+1].a0)
		}
		out = append(out, prefixed(" ", a[g.a1:until])...)
		shown = until
	}
	if len(all) > 0 && shown < len(a) {
		out = append(out, "...")
	}
	return out
}

func split(text string) []string {
	if text == "" {
		return nil
	}
	if !strings.HasSuffix(text, "\n") {
		text += " (no line end)\n"
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

func prefixed(sign string, lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = sign + line
	}
	return out
}
