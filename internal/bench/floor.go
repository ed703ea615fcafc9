package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// atOnce is how many requests the floor has under way.
const atOnce = 30

// measureFloor sends the objects of an install twice, once as dry runs and once
// for real, and does nothing else: what an install with a gate can't fall below.
func measureFloor(ctx context.Context, n, times int) (time.Duration, error) {
	config, _, err := connect()
	if err != nil {
		return 0, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return 0, err
	}
	var all []time.Duration
	for i := range times {
		namespace := fmt.Sprintf("bench-floor-%d-%d-%d", n, os.Getpid(), i)
		if err := createNamespace(ctx, namespace); err != nil {
			return 0, err
		}
		began := time.Now()
		for _, query := range []string{"&dryRun=All", ""} {
			err = errors.Join(err, sendAll(ctx, client, config.Host, namespace, n, query))
		}
		all = append(all, time.Since(began))
		removeNamespace(ctx, namespace)
		if err != nil {
			return 0, fmt.Errorf("measuring the floor: %w", err)
		}
	}
	slices.Sort(all)
	return all[len(all)/2], nil
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
			errs[i] = send(ctx, client, url, fmt.Sprintf(kinds[i%len(kinds)], i, "old"))
		})
	}
	all.Wait()
	return errors.Join(errs...)
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
