package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"runtime"
	"strings"
)

// The images of the real node; there are no others, and no registry. All are the
// machine's own busybox, whatever version their names say.
const (
	pauseImage   = "registry.k8s.io/pause:3.10"
	busyboxImage = "docker.io/library/busybox:1.37"
	testImage    = "deployer.test/busybox:1"
)

// image is one image of an archive.
type image struct {
	name    string
	command []string
}

// writeImages writes the node's images as "docker save" would, with the program
// busybox in their only layer.
func writeImages(ctx context.Context, path, busybox string) error {
	layer, err := busyboxLayer(ctx, busybox)
	if err != nil {
		return err
	}
	archive, err := imageArchive(layer, []image{
		{busyboxImage, []string{"sh"}},
		{testImage, []string{"sh"}},
		{pauseImage, []string{"sleep", "2147483647"}},
	})
	if err != nil {
		return fmt.Errorf("making the node's images: %w", err)
	}
	if err := os.WriteFile(path, archive, 0o600); err != nil {
		return fmt.Errorf("writing the node's images: %w", err)
	}
	return nil
}

// imageArchive packs images that share one layer.
func imageArchive(layer []byte, images []image) ([]byte, error) {
	type entry struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	var manifest []entry
	files := newArchive()
	files.add("layer.tar", layer)
	for _, i := range images {
		config, err := json.Marshal(map[string]any{
			"architecture": runtime.GOARCH,
			"os":           "linux",
			"config": map[string]any{
				"Cmd": i.command,
				"Env": []string{"PATH=/bin"},
				// Makes it an image of its own: of one with two names, pods show one.
				"Labels": map[string]string{"name": i.name},
			},
			"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest(layer)}},
		})
		if err != nil {
			return nil, err
		}
		name := digest(config) + ".json"
		files.add(name, config)
		manifest = append(manifest, entry{Config: name, RepoTags: []string{i.name}, Layers: []string{"layer.tar"}})
	}
	data, err := json.Marshal(manifest)
	if err != nil {
		return nil, err
	}
	files.add("manifest.json", data)
	return files.bytes()
}

// busyboxLayer is a root file system with busybox and a link to it for each of
// its commands.
func busyboxLayer(ctx context.Context, busybox string) ([]byte, error) {
	program, err := os.ReadFile(busybox)
	if err != nil {
		return nil, fmt.Errorf("making the node's images: %w", err)
	}
	commands, err := exec.CommandContext(ctx, busybox, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("making the node's images: listing the commands of %s: %w", busybox, err)
	}
	layer := newArchive()
	for _, dir := range []string{"bin/", "etc/", "proc/", "root/", "sys/", "dev/"} {
		layer.addHeader(tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755})
	}
	layer.addHeader(tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777})
	layer.add("etc/passwd", []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"))
	layer.add("etc/group", []byte("root:x:0:\nnogroup:x:65534:\n"))
	layer.add("bin/busybox", program)
	for _, command := range strings.Fields(string(commands)) {
		if command != "busybox" {
			layer.addHeader(tar.Header{Typeflag: tar.TypeSymlink, Name: path.Join("bin", command), Linkname: "busybox", Mode: 0o777})
		}
	}
	content, err := layer.bytes()
	if err != nil {
		return nil, fmt.Errorf("making the node's images: %w", err)
	}
	return content, nil
}

// archive is a tar archive in memory. It remembers its first error.
type archive struct {
	buffer bytes.Buffer
	writer *tar.Writer
	err    error
}

func newArchive() *archive {
	a := &archive{}
	a.writer = tar.NewWriter(&a.buffer)
	return a
}

// add adds a file that everyone may read and run.
func (a *archive) add(name string, content []byte) {
	a.addHeader(tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(content))})
	if a.err == nil {
		_, a.err = a.writer.Write(content)
	}
}

func (a *archive) addHeader(h tar.Header) {
	if a.err == nil {
		a.err = a.writer.WriteHeader(&h)
	}
}

// bytes ends the archive and gives its content.
func (a *archive) bytes() ([]byte, error) {
	if a.err == nil {
		a.err = a.writer.Close()
	}
	return a.buffer.Bytes(), a.err
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
