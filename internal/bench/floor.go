package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// atOnce is how many requests the floor has under way.
const atOnce = 30

// measureFloor sends the objects of an install as an install sends them, with the
// label and the annotations that mark them as Helm's, once as dry runs and once for
// real, and does nothing else: what an install that asks first can't fall below.
func measureFloor(ctx context.Context, n, round int) (time.Duration, error) {
	config, _, err := connect()
	if err != nil {
		return 0, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return 0, err
	}
	namespace := fmt.Sprintf("bench-floor-%d-%d-%d", n, os.Getpid(), round)
	if err := createNamespace(ctx, namespace); err != nil {
		return 0, err
	}
	defer removeNamespace(ctx, namespace)
	began := time.Now()
	for _, query := range []string{"&dryRun=All", ""} {
		if err := sendAll(ctx, client, config.Host, namespace, n, query); err != nil {
			return 0, fmt.Errorf("measuring the floor: %w", err)
		}
	}
	return time.Since(began), nil
}

// places are where objects of the kinds go, in the same order.
var places = []string{"/api/v1/namespaces/%s/configmaps/", "/api/v1/namespaces/%s/serviceaccounts/", "/api/v1/namespaces/%s/services/", "/apis/rbac.authorization.k8s.io/v1/namespaces/%s/roles/"}

func sendAll(ctx context.Context, client *http.Client, host, namespace string, n int, query string) error {
	errs := make([]error, n)
	slots := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			url := host + fmt.Sprintf(places[i%len(places)], namespace) + fmt.Sprintf("o-%d?fieldManager=floor&force=true%s", i, query)
			errs[i] = send(ctx, client, url, withOwnership(fmt.Sprintf(kinds[i%len(kinds)], i, "old"), namespace))
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// withOwnership adds to an object what an install adds to it:
// https://helm.sh/docs/chart_best_practices/labels/ has the label, and
// helm.sh/helm/v3/pkg/action/validate.go the annotations.
func withOwnership(object, namespace string) string {
	annotations := "  annotations:\n    meta.helm.sh/release-name: bench\n    meta.helm.sh/release-namespace: " + namespace + "\n"
	object = strings.Replace(object, "metadata:\n", "metadata:\n  labels:\n    app.kubernetes.io/managed-by: Helm\n", 1)
	if strings.Contains(object, "  annotations:\n") {
		return strings.Replace(object, "  annotations:\n", annotations, 1)
	}
	return strings.Replace(object, "metadata:\n", "metadata:\n"+annotations, 1)
}

func send(ctx context.Context, client *http.Client, url, body string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/apply-patch+yaml")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode > 299 {
		err = fmt.Errorf("%s: %s", response.Status, answer)
	}
	return err
}
