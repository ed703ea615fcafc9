package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// fakeRegistry keeps what is pushed to it in memory: the part of the OCI
// distribution specification that pushing and pulling charts needs.
// https://github.com/opencontainers/distribution-spec/blob/main/spec.md
type fakeRegistry struct {
	user, password string // asked for when not empty

	mu        sync.Mutex
	blobs     map[string][]byte // by digest
	manifests map[string][]byte // by name:tag and name@digest
	types     map[string]string // media types of manifests
	uploads   int
}

func newFakeRegistry() *fakeRegistry {
	return &fakeRegistry{blobs: map[string][]byte{}, manifests: map[string][]byte{}, types: map[string]string{}}
}

func (r *fakeRegistry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if user, password, _ := q.BasicAuth(); r.user != "" && (user != r.user || password != r.password) {
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	path := strings.TrimPrefix(q.URL.Path, "/v2/")
	switch {
	case path == "":
		fmt.Fprint(w, "{}")
	case strings.Contains(path, "/blobs/uploads/"):
		r.upload(w, q)
	case strings.Contains(path, "/blobs/"):
		r.blob(w, q, path[strings.LastIndex(path, "/")+1:])
	case strings.Contains(path, "/manifests/"):
		name, reference, _ := strings.Cut(path, "/manifests/")
		r.manifest(w, q, name, reference)
	case strings.HasSuffix(path, "/tags/list"):
		r.tags(w, strings.TrimSuffix(path, "/tags/list"))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (r *fakeRegistry) upload(w http.ResponseWriter, q *http.Request) {
	if q.Method == http.MethodPost {
		r.uploads++
		w.Header().Set("Location", fmt.Sprintf("%s%d", q.URL.Path, r.uploads))
		w.WriteHeader(http.StatusAccepted)
		return
	}
	data, err := io.ReadAll(q.Body)
	digest := q.URL.Query().Get("digest")
	if err != nil || digest != digestOf(data) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.blobs[digest] = data
	w.Header().Set("Docker-Content-Digest", digest)
	w.WriteHeader(http.StatusCreated)
}

func (r *fakeRegistry) blob(w http.ResponseWriter, q *http.Request, digest string) {
	send(w, q, r.blobs[digest], "application/octet-stream")
}

func (r *fakeRegistry) manifest(w http.ResponseWriter, q *http.Request, name, reference string) {
	key := name + ":" + reference
	if q.Method == http.MethodPut {
		data, err := io.ReadAll(q.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		for _, k := range []string{key, name + ":" + digestOf(data)} {
			r.manifests[k], r.types[k] = data, q.Header.Get("Content-Type")
		}
		w.Header().Set("Docker-Content-Digest", digestOf(data))
		w.WriteHeader(http.StatusCreated)
		return
	}
	send(w, q, r.manifests[key], r.types[key])
}

func (r *fakeRegistry) tags(w http.ResponseWriter, name string) {
	tags := []string{}
	for key := range r.manifests {
		if tag, ok := strings.CutPrefix(key, name+":"); ok && !strings.HasPrefix(tag, "sha256:") {
			tags = append(tags, tag)
		}
	}
	json.NewEncoder(w).Encode(map[string]any{"name": name, "tags": tags})
}

func send(w http.ResponseWriter, q *http.Request, data []byte, mediaType string) {
	if data == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	w.Header().Set("Docker-Content-Digest", digestOf(data))
	if q.Method != http.MethodHead {
		w.Write(data)
	}
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
