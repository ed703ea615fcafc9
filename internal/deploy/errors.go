package deploy

import (
	"errors"
	"fmt"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/internal/program"
)

// A NameInUseError says that an install isn't possible because the release exists.
type NameInUseError struct{ Namespace, Name, Status string }

func (e *NameInUseError) Error() string {
	return fmt.Sprintf("cannot re-use a name that is still in use: release %s is %s", e.Name, e.Status)
}

// Hint says what to do about it.
func (e *NameInUseError) Hint() string {
	return fmt.Sprintf("to deploy over it:      "+program.OnCluster+" upgrade --install -n %s %s CHART\nto start from nothing:  "+program.OnCluster+" uninstall -n %s %s", e.Namespace, e.Name, e.Namespace, e.Name)
}

// uninstalledError says that a release is uninstalled, so there is nothing to work on.
func uninstalledError(namespace, name string, revision int) error {
	return program.WithHint(fmt.Errorf("release %s is uninstalled and has no objects", name), fmt.Sprintf("to restore it:  "+program.OnCluster+" rollback -n %s %s %d", namespace, name, revision))
}

// A NoNamespaceError says that the namespace of a release isn't there.
type NoNamespaceError struct{ Namespace string }

func (e *NoNamespaceError) Error() string {
	return fmt.Sprintf("namespaces %q not found", e.Namespace)
}

// Hint says what to do about it.
func (e *NoNamespaceError) Hint() string {
	return "create it with --create-namespace, or name another with --namespace"
}

// An inputError is a mistake in what the user gave: no other run can have a part in it.
type inputError struct{ error }

// Unwrap gives the mistake.
func (e inputError) Unwrap() error { return e.error }

// A refusedError is why an operation isn't begun.
type refusedError struct{ error }

// Unwrap gives the reason.
func (e refusedError) Unwrap() error { return e.error }

// ChangedNothing is true.
func (e refusedError) ChangedNothing() bool { return true }

// refusal makes err a refusedError; nil for nil.
func refusal(err error) error {
	if err == nil {
		return nil
	}
	return refusedError{err}
}

// A HookError says which hook failed, and at which event.
type HookError struct {
	Event helmrelease.HookEvent
	Hook  string
	Err   error
}

func (e *HookError) Error() string {
	return fmt.Sprintf("%s hook %s failed: %s", e.Event, e.Hook, e.Err)
}

// Unwrap gives the reason.
func (e *HookError) Unwrap() error { return e.Err }

// A StoppedError says that the run was ended from outside: by a signal, or
// because another run took the release over.
type StoppedError struct {
	Step  Step // that it had reached
	Cause error
	Err   error // the step's error; nil between steps
}

func (e *StoppedError) Error() string {
	if e.Step == "" {
		return e.Cause.Error()
	}
	return fmt.Sprintf("%s in step %s", e.Cause, e.Step)
}

// Unwrap gives the cause, and what the step said of it.
func (e *StoppedError) Unwrap() error { return errors.Join(e.Cause, e.Err) }
