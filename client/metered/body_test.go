package metered

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"remit/client/wire"
)

// A body that hides the usage reads as any other: in pieces of any size, with the error of its end after its last byte.
func TestABodyHidesTheUsageChunk(t *testing.T) {
	t.Parallel()
	const (
		oneChoice = `data: {"choices":[{"delta":{"content":"é"}}],"usage":null}`
		theUsage  = `data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5}}`
	)
	const passes = oneChoice + "\r\n\r\n" + "data: [DONE]\r\n\r\n"
	const stream = oneChoice + "\r\n\r\n" + theUsage + "\r\n\r\n" + "data: [DONE]\r\n\r\n"
	for name, come := range map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader,
		"its end with its last bytes": iotest.DataErrReader, "in halves": iotest.HalfReader,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			transport := &Transport{Prices: parsed(t, someTable)}
			call := must(transport.read(post(t, chatPath, `{"model":"small","stream":true}`), wire.ChatCompletions))(t)
			s := &settlement{transport: transport, call: call}
			b := newBody(t.Context(), &http.Response{
				Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(come(strings.NewReader(stream))),
			}, s)
			b.settled = true // other tests settle
			b.timer.Reset(time.Hour)
			defer b.timer.Stop()
			got, err := io.ReadAll(iotest.OneByteReader(b))
			if string(got) != passes || err != nil {
				t.Errorf("%q, %v", got, err)
			}
			if n, err := b.Read(make([]byte, 10)); n != 0 || err != io.EOF {
				t.Errorf("after its end: %d bytes, %v", n, err)
			}
		})
	}
}
