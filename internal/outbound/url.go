package outbound

import (
	"errors"
	"net/url"
	"strconv"
)

// MaxURL is the length of the longest URL, in bytes.
const MaxURL = 2048

// CheckURL returns why a text cannot be the URL of a request of ours, in words that follow its name; nil if it can. http is allowed
// only with allowPlain. It resolves nothing: whether the host is public shows when a request connects.
func CheckURL(text string, allowPlain bool) error {
	if len(text) > MaxURL {
		return errors.New("must have at most " + strconv.Itoa(MaxURL) + " bytes")
	}
	parsed, err := url.Parse(text)
	switch {
	case err != nil || parsed.Hostname() == "" || parsed.Opaque != "":
		return errors.New("must be an absolute URL with a host")
	case parsed.Scheme != "https" && parsed.Scheme != "http":
		return errors.New("must be an https URL")
	case parsed.Scheme == "http" && !allowPlain:
		return errors.New("must be an https URL: plain http needs --webhook-allow-private")
	case parsed.User != nil:
		return errors.New("must not contain credentials")
	case parsed.Fragment != "":
		return errors.New("must not have a fragment")
	case !validPort(parsed):
		return errors.New("must have a port from 1 to 65535")
	case !allowPlain && !isReceiverPort(parsed.Port()):
		return errors.New("must have port 443 or one from 1024 on: others need --webhook-allow-private")
	}
	return nil
}

// isReceiverPort says whether a server on the Internet that we send to may have the port. Those below 1024 belong to protocols whose servers take a
// connection from Remit for an attack (22, 25, 389 …); "" is that of https.
func isReceiverPort(text string) bool {
	port, err := strconv.ParseUint(text, 10, 16)
	return text == "" || err == nil && (port == 443 || port >= 1024)
}

func validPort(parsed *url.URL) bool {
	if parsed.Port() == "" {
		return true
	}
	port, err := strconv.ParseUint(parsed.Port(), 10, 16)
	return err == nil && port > 0
}
