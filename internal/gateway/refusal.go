package gateway

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"remit/money"
)

// refusal is why a request is not passed on, or an answer is not passed back.
type refusal struct {
	status int
	code   string // Remit's
	detail string // for people; it holds nothing of a prompt, an answer or a credential

	param     string          // the member of the request at fault; "": none
	wait      int             // seconds, until it may be tried again; 0: none
	retriable bool            // the providers' SDKs may try again by themselves
	remaining *money.MicroUSD // of the session; nil: not known
	cause     error           // for the log
}

func refuse(status int, code, detail string) *refusal {
	return &refusal{status: status, code: code, detail: detail}
}

// String is for logs.
func (r *refusal) String() string { return strconv.Itoa(r.status) + " " + r.code + ": " + r.detail }

// retryAfter has the client try again after so many seconds.
func (r *refusal) retryAfter(seconds int) *refusal {
	r.retriable, r.wait = true, max(seconds, 1)
	return r
}

// statusFor returns the status for a client that sends these headers. Codex does not read x-should-retry: it tries again five times after
// all statuses but 400 and 429, and has a use of its own for 401 and 426.
func (r *refusal) statusFor(h http.Header) int {
	isCodex := strings.HasPrefix(h.Get("Originator"), "codex")
	if isCodex && !r.retriable && r.status != http.StatusUnauthorized && r.status != http.StatusUpgradeRequired {
		return http.StatusBadRequest
	}
	return r.status
}

// write answers with the refusal, in the shape of the provider's errors.
func (r *refusal) write(w http.ResponseWriter, status int, of protocol, requestID string) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Should-Retry", strconv.FormatBool(r.retriable)) // read by the SDKs of OpenAI and Anthropic
	if r.wait > 0 {
		h.Set("Retry-After", strconv.Itoa(r.wait))
	}
	if r.remaining != nil {
		h.Set(headerRemaining, r.remaining.String())
	}
	body := r.body(of, requestID)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // fails only when the client is gone
}

func (r *refusal) body(of protocol, requestID string) []byte {
	type openAIError struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    string  `json:"code"`
	}
	type anthropicError struct {
		Type    string `json:"type"`
		Message string `json:"message"`
		Code    string `json:"code"`
	}
	ofOpenAI := openAIError{Message: r.message(), Type: r.openAIType(), Code: r.code}
	if r.param != "" {
		ofOpenAI.Param = new(clipped(r.param, mostParam))
	}
	var body any = struct {
		Error openAIError `json:"error"`
	}{ofOpenAI}
	if of == anthropic {
		body = struct {
			Type      string         `json:"type"`
			Error     anthropicError `json:"error"`
			RequestID string         `json:"request_id"`
		}{"error", anthropicError{r.anthropicType(), r.message(), r.code}, requestID}
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // texts can always be encoded
	}
	return append(text, '\n')
}

// message says who refuses: the person who reads it looks at the provider first.
func (r *refusal) message() string {
	return "Remit: " + clipped(strings.TrimSuffix(r.detail, "."), mostDetail) + " (" + r.code + ")"
}

// What a refusal quotes of a request, such as the name of a member, has any length.
const (
	mostParam  = 100 // characters
	mostDetail = 600
)

func clipped(text string, most int) string {
	for at := range text {
		if most--; most < 0 {
			return text[:at] + "…"
		}
	}
	return text
}

func (r *refusal) openAIType() string {
	switch r.status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusPaymentRequired:
		return "insufficient_quota"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	}
	if r.status >= http.StatusInternalServerError {
		return "server_error"
	}
	return "invalid_request_error"
}

func (r *refusal) anthropicType() string {
	switch r.status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusPaymentRequired:
		return "billing_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusGatewayTimeout:
		return "timeout_error"
	}
	if r.status >= http.StatusInternalServerError {
		return "api_error"
	}
	return "invalid_request_error"
}
