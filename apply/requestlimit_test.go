package apply_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	flowcontrol "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"deployer/internal/kubetest"
)

// TestRequestsAtOnceAdaptToPriorityLevels deploys two hundred objects by a user for whom the API
// server executes one request at a time and rejects all others. Nothing may fail, and what follows must
// be fewer requests at once; and more again, when the server allows them.
func TestRequestsAtOnceAdaptToPriorityLevels(t *testing.T) {
	s := begin(t)
	s.since("1.30", "priority levels of no share")
	u := s.c.User(t, s.ns, kubetest.Rule("", "*", "configmaps"))
	allowAll := s.oneSeat(u)
	s.as(u)
	initial := s.cluster.RequestsAtOnce()
	s.deploy(configs("1"))
	few := s.cluster.RequestsAtOnce()
	if few >= initial {
		t.Fatalf("%d requests at once where one is allowed", few)
	}
	allowAll()
	for round := 2; s.cluster.RequestsAtOnce() <= few; round++ {
		if round > 20 {
			t.Fatalf("still %d requests at once after %d rounds in which all were allowed", few, round)
		}
		s.deploy(configs(fmt.Sprint(round)))
	}
}

// configs are two hundred ConfigMaps with a value.
func configs(value string) string {
	var all strings.Builder
	for i := range 200 {
		fmt.Fprintf(&all, "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\ndata: {k: %q}\n", i, value)
	}
	return all.String()
}

// oneSeat gives a user a priority level of its own without seats: the API server executes a request
// only while it executes no other one. The function that is returned takes it away.
func (s *story) oneSeat(u *kubetest.User) (allowAll func()) {
	s.t.Helper()
	client := s.c.Client().FlowcontrolV1()
	name := "one-seat-" + s.ns
	none := int32(0)
	level := &flowcontrol.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: flowcontrol.PriorityLevelConfigurationSpec{
		Type: flowcontrol.PriorityLevelEnablementLimited,
		Limited: &flowcontrol.LimitedPriorityLevelConfiguration{
			NominalConcurrencyShares: &none, BorrowingLimitPercent: &none,
			LimitResponse: flowcontrol.LimitResponse{Type: flowcontrol.LimitResponseTypeReject},
		},
	}}
	level, err := client.PriorityLevelConfigurations().Create(s.t.Context(), level, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	flow := &flowcontrol.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: flowcontrol.FlowSchemaSpec{
		PriorityLevelConfiguration: flowcontrol.PriorityLevelConfigurationReference{Name: name},
		MatchingPrecedence:         2,
		Rules: []flowcontrol.PolicyRulesWithSubjects{{
			Subjects: []flowcontrol.Subject{{Kind: flowcontrol.SubjectKindUser, User: &flowcontrol.UserSubject{Name: u.Name}}},
			ResourceRules: []flowcontrol.ResourcePolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"},
				ClusterScope: true, Namespaces: []string{"*"}}},
			NonResourceRules: []flowcontrol.NonResourcePolicyRule{{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}},
		}},
	}}
	if _, err := client.FlowSchemas().Create(s.t.Context(), flow, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	remove := func(ctx context.Context) error { return client.FlowSchemas().Delete(ctx, name, metav1.DeleteOptions{}) }
	s.t.Cleanup(func() {
		ctx := context.WithoutCancel(s.t.Context())
		_ = remove(ctx) // mostly gone
		if err := client.PriorityLevelConfigurations().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			s.t.Log(err)
		}
	})
	s.waitForLevel(u, func(uid types.UID) bool { return uid == level.UID })
	return func() {
		s.t.Helper()
		if err := remove(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
		s.waitForLevel(u, func(uid types.UID) bool { return uid != level.UID })
	}
}

// waitForLevel waits until requests of a user have the right priority level.
func (s *story) waitForLevel(u *kubetest.User, right func(types.UID) bool) {
	s.t.Helper()
	config := u.Config()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		s.t.Fatal(err)
	}
	s.c.Eventually(s.t, time.Minute, "the priority level of "+u.Name, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/version", nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		answer.Body.Close()
		if uid := answer.Header.Get(flowcontrol.ResponseHeaderMatchedPriorityLevelConfigurationUID); !right(types.UID(uid)) {
			return fmt.Errorf("it is %s", uid)
		}
		return nil
	})
}
