package hide

import "io"

// Writer returns a writer that hides confidential texts. Each write must consist of whole
// lines or documents.
func (t *Texts) Writer(to io.Writer) io.Writer {
	if t == nil {
		return to
	}
	return writer{t, to}
}

type writer struct {
	texts *Texts
	to    io.Writer
}

func (w writer) Write(data []byte) (int, error) {
	if _, err := io.WriteString(w.to, w.texts.Hide(string(data))); err != nil {
		return 0, err
	}
	return len(data), nil
}
