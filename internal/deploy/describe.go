package deploy

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// description returns the description for the record: after success the user's or else
// Helm's, after a failure Helm's with the reason.
func (r *run) description(err error) string {
	op, verb := r.op, verbs[r.op.Verb]
	given := op.Next.Info.Description
	if op.Verb == Uninstall {
		given = op.Removal.Description
	}
	switch {
	case err != nil:
		return fmt.Sprintf(verb.failure, op.Release, oneLine(r.Hidden.Hide(reason(err))))
	case given != "":
		return given
	case op.Verb == Rollback:
		return fmt.Sprintf(verb.success, op.Target)
	}
	return verb.success
}

func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "timed out: " + err.Error()
	}
	return err.Error()
}

// oneLine makes one line of a text.
func oneLine(s string) string {
	lines := strings.FieldsFunc(s, func(r rune) bool { return r == '\n' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.ReplaceAll(strings.Join(lines, "; "), ":; ", ": ")
}
