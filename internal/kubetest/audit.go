package kubetest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
)

// auditTimeout is how long the audit log may take to show a request.
const auditTimeout = 30 * time.Second

// An AuditEvent is one request to the API server.
type AuditEvent struct {
	ID        string    `json:"auditID"`
	Verb      string    `json:"verb"`       // of Kubernetes: get, list, watch, create, update, patch, delete, deletecollection
	URI       string    `json:"requestURI"` // path and query
	Code      int       `json:"-"`          // HTTP status; a watch has it from its beginning
	User      string    `json:"-"`
	UserAgent string    `json:"userAgent"`
	Object    ObjectRef `json:"objectRef"`                // zero for what isn't an object, like discovery
	Time      time.Time `json:"requestReceivedTimestamp"` // when the request came
}

// ObjectRef names what a request was about, as far as its URI tells: a list has
// no name, and neither has an object that is created by POST.
type ObjectRef struct {
	Group       string `json:"apiGroup"`
	Version     string `json:"apiVersion"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
}

// String is for messages of failing tests.
func (e AuditEvent) String() string { return fmt.Sprintf("%s %s %d", e.Verb, e.URI, e.Code) }

// DryRun reports whether the request was to change nothing: dryRun=All.
func (e AuditEvent) DryRun() bool {
	_, query, _ := strings.Cut(e.URI, "?")
	values, err := url.ParseQuery(query)
	return err == nil && slices.Contains(values["dryRun"], "All")
}

// Write reports whether the request was to change something that is stored,
// whether or not it succeeded. Questions that take the form of creating an
// object, like SelfSubjectAccessReview, are none.
func (e AuditEvent) Write() bool {
	switch e.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
	default:
		return false
	}
	if g := e.Object.Group; g == "authorization.k8s.io" || g == "authentication.k8s.io" {
		return false
	}
	return !e.DryRun()
}

// Writes gives those events that were to change something, see AuditEvent.Write.
func Writes(events []AuditEvent) []AuditEvent {
	return slices.DeleteFunc(slices.Clone(events), func(e AuditEvent) bool { return !e.Write() })
}

// Audit gives what one client has asked of the API server since this test
// process started, in the order in which requests were answered, watches in the
// order in which they began. Who is the whole name of a user or the beginning of
// a user agent. Tests that run at the same time need different ones: the name of
// a User, or a UserAgent set in a Config.
//
// Every request that was answered before the call is there. Without an audit log
// the test is skipped.
func (c *Cluster) Audit(t testing.TB, who string) []AuditEvent {
	t.Helper()
	if c.auditLog == "" {
		t.Skip("this cluster's audit log is needed; name its file in DEPLOYER_TEST_AUDIT_LOG")
	}
	if err := c.flushAudit(t.Context()); err != nil {
		t.Fatalf("waiting for the audit log: %v", err)
	}
	events, err := c.auditSoFar(who)
	if err != nil {
		t.Fatalf("reading the audit log: %v", err)
	}
	return events
}

// An AuditReader reads what one client has asked, from where it left off: the log grows
// to hundreds of megabytes in a long run, and tests look again and again.
type AuditReader struct {
	log, who string
	offset   int64           // where the log goes on that hasn't been read
	seen     map[string]bool // by ID
	events   []AuditEvent
}

// NewAuditReader gives a reader of what the log gets from now on, which is a client's requests from now on and those that
// have just been answered. Who is the whole name of a user or the beginning of a user agent.
func NewAuditReader(log, who string) (*AuditReader, error) {
	info, err := os.Stat(log)
	if err != nil {
		return nil, fmt.Errorf("the audit log: %w", err)
	}
	return &AuditReader{log: log, who: who, offset: info.Size(), seen: map[string]bool{}}, nil
}

// auditSoFar gives all events of a client that the log has now.
func (c *Cluster) auditSoFar(who string) ([]AuditEvent, error) {
	c.auditing.Lock()
	defer c.auditing.Unlock()
	reader := c.auditReaders[who]
	if reader == nil {
		reader = &AuditReader{log: c.auditLog, who: who, offset: c.auditFrom, seen: map[string]bool{}}
		c.auditReaders[who] = reader
	}
	return reader.Read()
}

// auditFromNow spares Audit the part of the log before a client that is new.
func (c *Cluster) auditFromNow(who string) error {
	if c.auditLog == "" {
		return nil
	}
	reader, err := NewAuditReader(c.auditLog, who)
	if err != nil {
		return err
	}
	c.auditing.Lock()
	defer c.auditing.Unlock()
	c.auditReaders[who] = reader
	return nil
}

// flushAudit waits until all requests answered so far are in the log: until it
// shows a request of our own that came after them. A request is logged just
// after it has been answered, so it takes a second one to be sure that the others
// were not overtaken.
func (c *Cluster) flushAudit(ctx context.Context) error {
	for range 2 {
		marker, err := NewAuditReader(c.auditLog, "kubetest-marker/"+rand.Text())
		if err != nil {
			return err
		}
		config := c.Config()
		config.UserAgent = marker.who
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		if _, err := client.Discovery().ServerVersion(); err != nil {
			return err
		}
		err = eventually(ctx, auditTimeout, func(context.Context) error {
			events, err := marker.Read()
			if err == nil && len(events) == 0 {
				err = errors.New("a request of ours isn't in it")
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Read gives all that the client has asked, as far as the log has it.
func (r *AuditReader) Read() ([]AuditEvent, error) {
	file, err := os.Open(r.log)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Seek(r.offset, io.SeekStart); err != nil {
		return nil, err
	}
	for lines := bufio.NewReaderSize(file, 1<<20); ; {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return slices.Clone(r.events), nil // a line that is still being written is read next time
		}
		if err != nil {
			return nil, err
		}
		r.offset += int64(len(line))
		if err := r.add(line); err != nil {
			return nil, err
		}
	}
}

// add adds the event of a line if it is the client's.
func (r *AuditReader) add(line []byte) error {
	// Decoding all lines of all clients would take long.
	if !bytes.Contains(line, []byte(r.who)) {
		return nil
	}
	event, err := parseAudit(line)
	if err != nil {
		return fmt.Errorf("%w in the line %s", err, line)
	}
	isTheirs := event.User == r.who || strings.HasPrefix(event.UserAgent, r.who)
	if !isTheirs || r.seen[event.ID] { // a watch is logged when it begins and when it ends
		return nil
	}
	r.seen[event.ID] = true
	r.events = append(r.events, event)
	return nil
}

// parseAudit understands one line of the log, an Event of audit.k8s.io/v1.
func parseAudit(line []byte) (AuditEvent, error) {
	var logged struct {
		AuditEvent
		User           struct{ Username string }
		ResponseStatus struct{ Code int }
	}
	err := json.Unmarshal(line, &logged)
	event := logged.AuditEvent
	event.User, event.Code = logged.User.Username, logged.ResponseStatus.Code
	return event, err
}
