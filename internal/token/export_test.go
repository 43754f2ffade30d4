package token

// ThumbprintInput shows the tests the JSON whose SHA-256 names a key: the example of RFC 7638 §3.1 is a public key
// without its private half, so ParseSigningKey cannot read it.
func ThumbprintInput(private any) (string, error) {
	key, err := describe(private)
	if err != nil {
		return "", err
	}
	return key.public.thumbprintInput(), nil
}
