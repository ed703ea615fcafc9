package kubetest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"deployer/internal/kubetest"
)

func TestNamespaceIsReadyForUse(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	one, two := c.Namespace(t), c.Namespace(t)
	if one == two || !strings.HasPrefix(one, "t-namespaceisreadyforuse-") {
		t.Errorf("Namespace() = %q, %q, want two names made from the test's", one, two)
	}
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	if _, err := c.Dynamic().Resource(gvr).Namespace(two).Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Errorf("the default service account: %v", err)
	}
}

// TestWorkloadsGoWithTheirTest: pods that go on would fill the nodes, and scripted ones keep the cluster busy.
func TestWorkloadsGoWithTheirTest(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	var name string
	t.Run("a test with a name / that isn't one", func(t *testing.T) {
		name = c.Namespace(t)
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j"}}
		job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}}}
		if _, err := c.Client().BatchV1().Jobs(name).Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		c.Eventually(t, time.Minute, "its pod", func(ctx context.Context) error {
			pods, err := c.Client().CoreV1().Pods(name).List(ctx, metav1.ListOptions{})
			if err == nil && len(pods.Items) == 0 {
				err = errors.New("there is none yet")
			}
			return err
		})
	})
	c.Eventually(t, time.Minute, "the end of Job/"+name+"/j and its pod", func(ctx context.Context) error {
		if _, err := c.Client().BatchV1().Jobs(name).Get(ctx, "j", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading the Job: %v", err)
		}
		pods, err := c.Client().CoreV1().Pods(name).List(ctx, metav1.ListOptions{})
		if err == nil && len(pods.Items) > 0 {
			err = errors.New("its pod is still there")
		}
		return err
	})
}

func TestKubeconfigHasTheNamespace(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	namespace := c.Namespace(t)
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: c.Kubeconfig(t, namespace)}, nil)
	if got, _, err := loader.Namespace(); err != nil || got != namespace {
		t.Errorf("the kubeconfig's namespace = %q, %v, want %q", got, err, namespace)
	}
	config, err := loader.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	if _, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("listing nodes as the administrator: %v", err)
	}
}

func TestUserMayDoWhatRulesSay(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	namespace, other := c.Namespace(t), c.Namespace(t)
	u := c.User(t, namespace, kubetest.Rule("", "get,list", "configmaps"))
	u.Allow(t, other, kubetest.Rule("apps", "list", "deployments"))
	u.Allow(t, "", kubetest.Rule("", "list", "nodes"), rbacv1.PolicyRule{
		Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"},
	})
	config, err := clientcmd.BuildConfigFromFlags("", u.Kubeconfig(t, namespace))
	if err != nil {
		t.Fatal(err)
	}
	for name, client := range map[string]kubernetes.Interface{
		"config":     kubernetes.NewForConfigOrDie(u.Config()),
		"kubeconfig": kubernetes.NewForConfigOrDie(config),
	} {
		list := metav1.ListOptions{}
		_, configMaps := client.CoreV1().ConfigMaps(namespace).List(t.Context(), list)
		_, deployments := client.AppsV1().Deployments(other).List(t.Context(), list)
		_, nodes := client.CoreV1().Nodes().List(t.Context(), list)
		if err := errors.Join(configMaps, deployments, nodes); err != nil {
			t.Errorf("%s: what rules allow: %v", name, err)
		}
		_, err := client.CoreV1().ConfigMaps(other).List(t.Context(), list)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), u.Name) {
			t.Errorf("%s: listing ConfigMaps of another namespace: %v, want forbidden for %s", name, err, u.Name)
		}
	}
}

func TestAuditShowsWhatAClientDid(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	namespace := c.Namespace(t)
	u := c.User(t, namespace, kubetest.Rule("", "*", "configmaps"))
	config := u.Config()
	config.UserAgent = "auditing/" + namespace
	configMaps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps(namespace)

	one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	_, dryRun := configMaps.Create(t.Context(), one, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	_, create := configMaps.Create(t.Context(), one, metav1.CreateOptions{})
	_, again := configMaps.Create(t.Context(), one, metav1.CreateOptions{})
	watch, err := configMaps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	if err := errors.Join(dryRun, create, err); err != nil || !apierrors.IsAlreadyExists(again) {
		t.Fatal(err, again)
	}
	defer watch.Stop()
	<-watch.ResultChan() // it has begun

	base := "/api/v1/namespaces/" + namespace + "/configmaps"
	want := []string{
		"create " + base + "?dryRun=All 201",
		"create " + base + " 201",
		"create " + base + " 409",
		"watch " + base + "?resourceVersion=0&watch=true 200",
	}
	events := c.Audit(t, config.UserAgent)
	if got := fmt.Sprint(events); got != fmt.Sprint(want) {
		t.Errorf("Audit by user agent:\n got %v\nwant %v", got, want)
	}
	if got := fmt.Sprint(kubetest.Writes(events)); got != fmt.Sprint(want[1:3]) {
		t.Errorf("Writes:\n got %v\nwant %v", got, want[1:3])
	}
	for _, e := range events {
		ref := kubetest.ObjectRef{Version: "v1", Resource: "configmaps", Namespace: namespace, Name: e.Object.Name}
		if e.User != u.Name || e.Object != ref || e.Time.IsZero() {
			t.Errorf("the event %v is %+v, want user %s and object %+v", e, e, u.Name, ref)
		}
	}
	// The wait for the user's rights has asked by the same name, and isn't a write.
	if got := fmt.Sprint(kubetest.Writes(c.Audit(t, u.Name))); got != fmt.Sprint(want[1:3]) {
		t.Errorf("Writes by user:\n got %v\nwant %v", got, want[1:3])
	}
}
