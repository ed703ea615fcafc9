package chart

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// postRenderGrace is how long a post-renderer's children may hold its output
// open after it has ended or was killed.
const postRenderGrace = 2 * time.Second

// PostRenderError says that the post-renderer failed.
type PostRenderError struct {
	Command string
	Stderr  string
	Err     error
}

func (e *PostRenderError) Error() string {
	text := fmt.Sprintf("post-renderer %s: %v", e.Command, e.Err)
	if stderr := strings.TrimSpace(e.Stderr); stderr != "" {
		text += "\n" + stderr
	}
	return text
}

func (e *PostRenderError) Unwrap() error { return e.Err }

// postRender pipes the manifest, without hooks, through a command. The command is killed when
// ctx ends.
func (r *Rendered) postRender(ctx context.Context, command []string) error {
	if len(command) == 0 {
		return nil
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(r.Manifest), &stdout, &stderr
	cmd.WaitDelay = postRenderGrace
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return &PostRenderError{Command: strings.Join(command, " "), Stderr: stderr.String(), Err: err}
	}
	if strings.TrimSpace(r.Manifest) != "" && strings.TrimSpace(stdout.String()) == "" {
		r.Warnings = append(r.Warnings, fmt.Sprintf("post-renderer %s returned nothing: the release has no objects", command[0]))
	}
	r.Manifest = stdout.String()
	return nil
}
