package token_test

import (
	"encoding/hex"
	"errors"
	"hash/crc32"
	"math/big"
	"strings"
	"testing"

	"github.com/google/uuid"

	"remit/internal/token"
)

// Made by other code than ours (Python) from organization and the bytes 0 to 31: if these change, every credential
// given out so far is void.
const (
	goldenAPIKey = "rmk_02SDLP62lR5z8FaLXbYdktj9n5n4fspcupwajssFf6ShP3Uj1C2Cz56zCr5LJTPyv06qGcU"
	goldenSecret = "rms_003AuLtjc7TJLctqJ2Unu3mfAGcxg9lrkrCWgKbidLF1zEE3m"
)

var organization = uuid.MustParse("018f3c2a-b4d5-7e06-91a2-b3c4d5e6f708")

func checkAPIKey(text string) error {
	_, err := token.APIKeyOrganization(text)
	return err
}

// kinds are the two credentials of the one format, so that each rule is held against both.
var kinds = []struct {
	name   string
	prefix string
	digits int
	bytes  uint
	golden string
	fresh  func() string
	check  func(string) error
}{
	{"API key", "rmk_", 65, 48, goldenAPIKey, func() string { return token.NewAPIKey(organization) }, checkAPIKey},
	{"agent secret", "rms_", 43, 32, goldenSecret, token.NewAgentSecret, token.CheckAgentSecret},
}

func TestHashIsSHA256(t *testing.T) {
	t.Parallel()
	sum := token.Hash("abc") // the example of FIPS 180-4
	if want := "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"; hex.EncodeToString(sum[:]) != want {
		t.Errorf("Hash = %x; want %s", sum, want)
	}
}

func TestAPIKeyNamesItsOrganization(t *testing.T) {
	t.Parallel()
	keys := map[string]uuid.UUID{goldenAPIKey: organization}
	for _, of := range []uuid.UUID{organization, uuid.New(), uuid.Nil, uuid.Max, {15: 1}, {0: 1}} {
		keys[token.NewAPIKey(of)] = of
	}
	for key, want := range keys {
		if got, err := token.APIKeyOrganization(key); err != nil || got != want {
			t.Errorf("APIKeyOrganization(%s) = %s, %v; want %s", key, got, err, want)
		}
	}
}

func TestFreshSecretsHaveTheirForm(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		seen := map[string]bool{}
		for range 1000 {
			text := kind.fresh()
			if err := kind.check(text); err != nil {
				t.Fatalf("%s %s: %v", kind.name, text, err)
			}
			digits := strings.TrimPrefix(text, kind.prefix)
			if len(digits) != kind.digits+6 || len(text) != len(kind.prefix)+len(digits) {
				t.Errorf("%s %s: want %s and %d characters", kind.name, text, kind.prefix, kind.digits+6)
			}
			seen[text] = true
		}
		if len(seen) != 1000 {
			t.Errorf("%s: of 1000 fresh ones %d are distinct", kind.name, len(seen))
		}
	}
}

func TestAChangedCharacterIsRefused(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		if err := kind.check(kind.golden); err != nil {
			t.Errorf("%s %s: %v", kind.name, kind.golden, err)
		}
		for i := range len(kind.golden) {
			for c := range 256 {
				changed := replaceByte(kind.golden, i, byte(c))
				if err := kind.check(changed); changed != kind.golden && !errors.Is(err, token.ErrMalformed) {
					t.Errorf("%s %q, changed at %d: %v", kind.name, changed, i, err)
				}
			}
		}
	}
}

// The checksum is right in all of these: only what the digits say is wrong.
func TestDigitsThatNoBytesGiveAreRefused(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		limit := new(big.Int).Lsh(big.NewInt(1), 8*kind.bytes)
		highest := new(big.Int).Sub(limit, big.NewInt(1))
		body := func(number *big.Int) string { return kind.prefix + digits(number, kind.digits) }
		for _, good := range []string{body(new(big.Int)), body(big.NewInt(1)), body(highest)} {
			if err := kind.check(seal(good)); err != nil {
				t.Errorf("%s %s: %v", kind.name, seal(good), err)
			}
		}
		zeros := strings.Repeat("0", kind.digits-1)
		bad := []string{
			body(limit), kind.prefix + strings.Repeat("Z", kind.digits), kind.prefix + "-" + zeros[1:] + "1", kind.prefix + zeros[1:] + "é",
			kind.prefix + zeros[1:] + "٣", kind.prefix + zeros + "00", kind.prefix + zeros, kind.prefix,
		}
		for _, odd := range []string{"+", "-", "_", ".", " ", "\n", "\x00", "\xff"} {
			bad = append(bad, kind.prefix+odd+zeros, kind.prefix+zeros[:9]+odd+zeros[9:], kind.prefix+zeros+odd)
		}
		for _, text := range bad {
			if err := kind.check(seal(text)); !errors.Is(err, token.ErrMalformed) {
				t.Errorf("%s %q: %v", kind.name, seal(text), err)
			}
		}
	}
}

func TestMalformedSecretsAreRefused(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		body, golden := kind.golden[:len(kind.golden)-6], kind.golden
		other := otherPrefix(body)
		for _, bad := range []string{
			"", kind.prefix, golden[4:], "rmr_" + golden[4:], seal("rmr_" + body[4:]), seal("RMK_" + body[4:]), otherPrefix(golden), seal(other),
			body + strings.TrimPrefix(seal(other), other), body, body + "00000000", " " + golden, golden + "\n", golden + golden,
			kind.prefix + strings.Repeat("0", 1<<20), strings.Repeat("é", 1<<20), kind.prefix + strings.Repeat("é", (kind.digits+6)/2),
			strings.Repeat("\xff", len(golden)), strings.Repeat("\x00", len(golden)), strings.Repeat(" ", len(golden)), goldenRefresh, "e30.e30.e30",
		} {
			if err := kind.check(bad); !errors.Is(err, token.ErrMalformed) {
				t.Errorf("%s %.99q: %v", kind.name, bad, err)
			}
		}
	}
}

func FuzzAPIKeyOrganization(f *testing.F) {
	for _, seed := range []string{
		"", "rmk_", goldenAPIKey, goldenSecret, goldenRefresh, otherPrefix(goldenAPIKey),
		seal("rmk_" + strings.Repeat("0", 65)), seal("rmk_" + strings.Repeat("Z", 65)),
		seal("rmk_-" + strings.Repeat("0", 64)), seal("rmk_" + strings.Repeat("0", 63) + "é"),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		requireOneSpelling(t, text)
		requireOneSpelling(t, seal(text))        // past the checksum
		requireOneSpelling(t, seal("rmk_"+text)) // and past the prefix
	})
}

// requireOneSpelling fails when text is taken for an API key, but is not what its own number is written as.
func requireOneSpelling(tb testing.TB, text string) {
	tb.Helper()
	got, err := token.APIKeyOrganization(text)
	if err != nil {
		if got != uuid.Nil || !errors.Is(err, token.ErrMalformed) {
			tb.Errorf("APIKeyOrganization(%q) = %s, %v; want ErrMalformed", text, got, err)
		}
		return
	}
	number, ok := new(big.Int).SetString(text[4:len(text)-6], 62)
	if !ok || number.BitLen() > 384 {
		tb.Fatalf("%q was accepted", text)
	}
	if again := seal("rmk_" + digits(number, 65)); again != text {
		tb.Errorf("%q is also written %q", text, again)
	}
	if want := uuid.UUID(number.FillBytes(make([]byte, 48))[:16]); got != want {
		tb.Errorf("APIKeyOrganization(%q) = %s; want %s", text, got, want)
	}
}

// digits writes a number in base62, filled up with zeros.
func digits(number *big.Int, width int) string {
	text := number.Text(62)
	return strings.Repeat("0", max(0, width-len(text))) + text
}

// seal returns the body with the checksum that belongs to it.
func seal(body string) string {
	return body + digits(big.NewInt(int64(crc32.ChecksumIEEE([]byte(body)))), 6)
}

// otherPrefix turns an API key's prefix into an agent secret's and the reverse.
func otherPrefix(text string) string {
	if rest, found := strings.CutPrefix(text, "rmk_"); found {
		return "rms_" + rest
	}
	return "rmk_" + strings.TrimPrefix(text, "rms_")
}

func replaceByte(text string, at int, with byte) string {
	return text[:at] + string([]byte{with}) + text[at+1:]
}
