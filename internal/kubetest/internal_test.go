package kubetest

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestEventuallyTellsWhatWasMissing(t *testing.T) {
	err := eventually(t.Context(), 100*time.Millisecond, func(ctx context.Context) error {
		if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) < 50*time.Millisecond {
			<-ctx.Done()
			return ctx.Err()
		}
		return errors.New("two of three")
	})
	if err == nil || err.Error() != "two of three" {
		t.Errorf("eventually = %v, want the last answer before time was up", err)
	}
}

func TestEventuallyEndsWhenMet(t *testing.T) {
	left := 3
	err := eventually(t.Context(), time.Minute, func(context.Context) error {
		left--
		if left > 0 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || left != 0 {
		t.Errorf("eventually = %v with %d left, want nil with 0", err, left)
	}
}

func TestWriteKnowsQuestions(t *testing.T) {
	for _, test := range []struct {
		event AuditEvent
		want  bool
	}{
		{AuditEvent{Verb: "get"}, false},
		{AuditEvent{Verb: "patch", URI: "/apis/apps/v1/namespaces/a/deployments/b?fieldManager=x&force=true"}, true},
		{AuditEvent{Verb: "patch", URI: "/apis/apps/v1/namespaces/a/deployments/b?dryRun=All&fieldManager=x"}, false},
		{AuditEvent{Verb: "deletecollection"}, true},
		{AuditEvent{Verb: "create", Object: ObjectRef{Group: "authorization.k8s.io"}}, false},
	} {
		if got := test.event.Write(); got != test.want {
			t.Errorf("Write(%v) = %v, want %v", test.event, got, test.want)
		}
	}
}

func TestUniqueNameIsAName(t *testing.T) {
	t.Run("with / odd characters: ÄÖÜ and quite a lot more than fits into a label", func(t *testing.T) {
		const prefix = "t-uniquenameisaname-with-odd-characters-an-"
		name := uniqueName(t)
		if len(name) > 63 || len(name) != len(prefix)+8 || name[:len(prefix)] != prefix {
			t.Errorf("uniqueName = %q, want %q and 8 more characters", name, prefix)
		}
	})
}
