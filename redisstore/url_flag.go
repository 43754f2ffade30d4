package redisstore

import "strings"

// URL is the URL of a Redis as a flag or an environment variable gives it; see Config.URL for its forms.
type URL string

// UnmarshalText removes the white space around the URL: a secret made from a file ends with the file's newline.
func (u *URL) UnmarshalText(text []byte) error {
	*u = URL(strings.TrimSpace(string(text)))
	return nil
}
