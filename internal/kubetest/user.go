package kubetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	api "k8s.io/client-go/tools/clientcmd/api"
)

// tokenLifetime outlasts any test.
const tokenLifetime = 6 * time.Hour

// User is somebody who may do only what rules allow: a service account.
type User struct {
	// Name is what the API server calls the user, also in its audit log.
	Name string

	cluster *Cluster
	account rbacv1.Subject
	token   string
}

// User creates a user that may do what rules allow in the namespace, and nothing
// else but what everybody may, like discovery. More is given by Allow. The
// user is removed with its namespace.
func (c *Cluster) User(t testing.TB, namespace string, rules ...rbacv1.PolicyRule) *User {
	t.Helper()
	accounts := c.client.CoreV1().ServiceAccounts(namespace)
	account, err := accounts.Create(t.Context(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "user-"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating a user in Namespace/%s: %v", namespace, err)
	}
	seconds := int64(tokenLifetime.Seconds())
	request, err := accounts.CreateToken(t.Context(), account.Name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("getting a token for ServiceAccount/%s/%s: %v", namespace, account.Name, err)
	}
	u := &User{
		Name:    fmt.Sprintf("system:serviceaccount:%s:%s", namespace, account.Name),
		cluster: c,
		account: rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account.Name},
		token:   request.Status.Token,
	}
	if err := c.auditFromNow(u.Name); err != nil {
		t.Fatal(err)
	}
	if len(rules) > 0 {
		u.Allow(t, namespace, rules...)
	}
	return u
}

// Allow lets the user do more in one namespace, or with "" in all of them and outside of them, by a ClusterRole that is
// removed with the test. It returns when the API server knows.
func (u *User) Allow(t testing.TB, namespace string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	rbac := u.cluster.client.RbacV1()
	named := metav1.ObjectMeta{Name: uniqueName(t)}
	_, err := rbac.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: named, Rules: rules}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating ClusterRole/%s: %v", named.Name, err)
	}
	u.cluster.cleanup(t, "ClusterRole/"+named.Name, func(ctx context.Context) error {
		return rbac.ClusterRoles().Delete(ctx, named.Name, metav1.DeleteOptions{})
	})
	role, subjects := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: named.Name}, []rbacv1.Subject{u.account}
	if namespace == "" {
		_, err = rbac.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: named, RoleRef: role, Subjects: subjects}, metav1.CreateOptions{})
		u.cluster.cleanup(t, "ClusterRoleBinding/"+named.Name, func(ctx context.Context) error {
			return rbac.ClusterRoleBindings().Delete(ctx, named.Name, metav1.DeleteOptions{})
		})
	} else {
		named = metav1.ObjectMeta{GenerateName: u.account.Name + "-"} // by which it is known as the user's in the namespace
		_, err = rbac.RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: named, RoleRef: role, Subjects: subjects}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatalf("binding ClusterRole/%s: %v", role.Name, err)
	}
	u.waitAllowed(t, namespace, rules)
}

// waitAllowed waits until the API server's authorizer, which follows the stored
// rules with a little delay, knows them.
func (u *User) waitAllowed(t testing.TB, namespace string, rules []rbacv1.PolicyRule) {
	t.Helper()
	client, err := kubernetes.NewForConfig(u.Config())
	if err != nil {
		t.Fatalf("a client for %s: %v", u.Name, err)
	}
	u.cluster.Eventually(t, 30*time.Second, "the rights of "+u.Name, func(ctx context.Context) error {
		for _, rule := range rules {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: question(namespace, rule)}
			answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			if err != nil {
				return err
			}
			if !answer.Status.Allowed {
				return fmt.Errorf("not allowed yet: %v", rule)
			}
		}
		return nil
	})
}

// question asks for one of the things that the rule allows.
func question(namespace string, rule rbacv1.PolicyRule) authorizationv1.SelfSubjectAccessReviewSpec {
	first := func(list []string) string {
		if len(list) == 0 {
			return ""
		}
		return list[0]
	}
	if len(rule.NonResourceURLs) > 0 {
		return authorizationv1.SelfSubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{
			Path: rule.NonResourceURLs[0], Verb: first(rule.Verbs),
		}}
	}
	resource, subresource, _ := strings.Cut(first(rule.Resources), "/")
	return authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Namespace:   namespace,
		Verb:        first(rule.Verbs),
		Group:       first(rule.APIGroups),
		Resource:    resource,
		Subresource: subresource,
		Name:        first(rule.ResourceNames),
	}}
}

// Config gives a configuration with the user's rights, without client-side rate
// limits.
func (u *User) Config() *rest.Config {
	config := rest.AnonymousClientConfig(u.cluster.config)
	config.BearerToken = u.token
	return config
}

// Kubeconfig writes a kubeconfig of the user with the given namespace and gives
// its path; "" leaves the namespace to the client. The file is removed with the
// test.
func (u *User) Kubeconfig(t testing.TB, namespace string) string {
	t.Helper()
	return u.cluster.writeKubeconfig(t, namespace, &api.AuthInfo{Token: u.token})
}

// Rule is a short way to write a rule for resources of one API group, with the
// verbs separated by commas: Rule("apps", "get,list,watch", "deployments").
func Rule(group, verbs string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{group},
		Verbs:     strings.Split(verbs, ","),
		Resources: resources,
	}
}
