package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
)

// Annotations of a simulated pod that hold what its containers have written.
// Followed by ".CONTAINER" they are for one container only. Without the second,
// the container's earlier run has written the same as this one.
const (
	logsKey         = "sim.deployer/logs"
	logsPreviousKey = "sim.deployer/logs-previous"
)

// logServer is the part of a kubelet that serves pod logs, for all simulated
// nodes at once.
type logServer struct{ client kubernetes.Interface }

// serveLogs serves pod logs on a free port, until ctx ends.
func serveLogs(ctx context.Context, kubeconfig string) (port int, err error) {
	client, err := newClient(kubeconfig)
	if err != nil {
		return 0, err
	}
	// The API server doesn't verify kubelets unless told to.
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		return 0, fmt.Errorf("making a certificate: %w", err)
	}
	certificate, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return 0, fmt.Errorf("making a certificate: %w", err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		return 0, fmt.Errorf("listening: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /containerLogs/{namespace}/{pod}/{container}", &logServer{client: client})
	go func() {
		err := (&http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}).Serve(listener)
		if ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "kwok: serving pod logs:", err)
			os.Exit(1)
		}
	}()
	context.AfterFunc(ctx, func() { listener.Close() })
	return listener.Addr().(*net.TCPAddr).Port, nil
}

func (s *logServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query, err := parseLogQuery(r.PathValue("container"), r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx := r.Context()
	pods := s.client.CoreV1().Pods(r.PathValue("namespace"))
	pod, err := pods.Get(ctx, r.PathValue("pod"), metav1.GetOptions{})
	if err != nil {
		status := http.StatusInternalServerError
		if apierrors.IsNotFound(err) {
			status = http.StatusNotFound
		}
		http.Error(w, err.Error(), status)
		return
	}
	if problem := query.problem(pod); problem != "" {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, problem) // the client may have left
		return
	}
	text := query.text(pod)
	if _, err := io.WriteString(w, query.cut(pod, text)); err != nil {
		return // the client has left
	}
	if query.Follow {
		s.follow(ctx, w, pod, query)
	}
}

// follow writes what the pod's annotation gets appended, until the container
// has ended or the client leaves.
func (s *logServer) follow(ctx context.Context, w http.ResponseWriter, pod *corev1.Pod, query logQuery) {
	flush := http.NewResponseController(w)
	_ = flush.Flush() // always possible with net/http's own server
	if query.over(pod) {
		return
	}
	watch, err := s.client.CoreV1().Pods(pod.Namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector("metadata.name", pod.Name).String(),
		ResourceVersion: pod.ResourceVersion,
	})
	if err != nil {
		return // as if the connection had broken; clients ask again
	}
	defer watch.Stop()
	written := query.text(pod)
	for event := range watch.ResultChan() {
		next, ok := event.Object.(*corev1.Pod)
		if !ok || event.Type == "DELETED" {
			return
		}
		text := query.text(next)
		if more, grown := strings.CutPrefix(text, written); grown && more != "" {
			if _, err := io.WriteString(w, more); err != nil {
				return
			}
			_ = flush.Flush()
			written = text
		}
		if query.over(next) {
			return
		}
	}
}
