package token_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/quick"

	"github.com/google/uuid"

	"remit/internal/token"
)

// goldenRefresh is what other code than ours (Python) derives from goldenFacts with refreshKey(0): if it changes, no
// refresh token given out so far is known any more.
const goldenRefresh = "rmr_-OqPggGPPCq01X4GkaKzxNXm9wgBjzwqtNV-BpGis8TV5vcJAAAAB-5vnr2TEBmp7hyk7x7UTsGh9cIWDxRRWgqUeFHVBDxP"

var goldenFacts = token.RefreshToken{
	Agent:      uuid.MustParse("018f3c2a-b4d5-7e06-91a2-b3c4d5e6f708"),
	Family:     uuid.MustParse("018f3c2a-b4d5-7e06-91a2-b3c4d5e6f709"),
	Generation: 7,
}

const (
	refreshPrefix   = "rmr_"
	refreshKeyBytes = 4 // bytes that name the key
	refreshMACStart = refreshKeyBytes + 16 + 16 + 4
)

func newRefreshKeyring(tb testing.TB, keys ...*token.RefreshKey) *token.Keyring {
	tb.Helper()
	return must(token.NewKeyring(issuer, parsed(rfc8037()), keys))(tb)
}

func requireRefreshRefused(tb testing.TB, ring *token.Keyring, name, text string, want error) {
	tb.Helper()
	if got, err := ring.ParseRefresh(text); !errors.Is(err, want) || got != (token.RefreshToken{}) {
		tb.Errorf("%s: ParseRefresh(%.200q) = %+v, %v; want %v", name, text, got, err, want)
	}
}

func TestRefreshTokenHoldsWhatItWasDerivedFrom(t *testing.T) {
	t.Parallel()
	ring := newRefreshKeyring(t, refreshKey(t, 0))
	returns := func(agent, family uuid.UUID, generation uint32) bool {
		want := token.RefreshToken{Agent: agent, Family: family, Generation: generation}
		text := ring.FormatRefresh(want)
		got, err := ring.ParseRefresh(text)
		return err == nil && got == want && text == ring.FormatRefresh(want) && len(text) == len(goldenRefresh)
	}
	must(0, quick.Check(returns, &quick.Config{MaxCount: 2000}))(t)
	if got, err := ring.ParseRefresh(goldenRefresh); err != nil || got != goldenFacts || ring.FormatRefresh(goldenFacts) != goldenRefresh {
		t.Errorf("ParseRefresh = %+v, %v; want %+v", got, err, goldenFacts)
	}
	for _, generation := range []uint32{0, 1, 255, 256, math.MaxInt32, math.MaxUint32} {
		if !returns(uuid.Nil, uuid.Max, generation) {
			t.Errorf("generation %d does not come back", generation)
		}
	}
}

func TestAChangedCharacterOfARefreshTokenIsRefused(t *testing.T) {
	t.Parallel()
	ring := newRefreshKeyring(t, refreshKey(t, 0))
	for i := range len(goldenRefresh) {
		for c := range 256 {
			changed := replaceByte(goldenRefresh, i, byte(c))
			if changed == goldenRefresh {
				continue
			}
			if got, err := ring.ParseRefresh(changed); err == nil || got != (token.RefreshToken{}) {
				t.Errorf("ParseRefresh(%q) = %+v, %v", changed, got, err)
			}
		}
	}
}

func TestAForgedRefreshTokenIsRefused(t *testing.T) {
	t.Parallel()
	ring := newRefreshKeyring(t, refreshKey(t, 0))
	body := decode(t, strings.TrimPrefix(goldenRefresh, refreshPrefix))[:refreshMACStart]
	forge := func(secret []byte, label string, body []byte) string {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(label))
		mac.Write(body)
		return refreshPrefix + encode(string(mac.Sum(body[:len(body):len(body)])))
	}
	const label = "remit refresh token\x00"
	if got := forge(countUp(0), label, body); got != goldenRefresh {
		t.Fatalf("this test forges badly: %s", got)
	}
	raised := decode(t, strings.TrimPrefix(goldenRefresh, refreshPrefix))
	raised[refreshMACStart-1]++
	for name, bad := range map[string]string{
		"another secret under the same id": forge(countUp(1), label, body),
		"no secret":                        forge(nil, label, body),
		"no label":                         forge(countUp(0), "", body),
		"the next generation, old HMAC":    refreshPrefix + encode(string(raised)),
		"no HMAC":                          refreshPrefix + encode(string(body)+strings.Repeat("\x00", sha256.Size)),
	} {
		requireRefreshRefused(t, ring, name, bad, token.ErrSignature)
	}
}

func TestRotatedTokenKeysKnowTheOldTokens(t *testing.T) {
	t.Parallel()
	before := newRefreshKeyring(t, refreshKey(t, 0))
	during := newRefreshKeyring(t, refreshKey(t, 1), refreshKey(t, 0))
	after := newRefreshKeyring(t, refreshKey(t, 1))

	old := before.FormatRefresh(goldenFacts)
	if got, err := during.ParseRefresh(old); err != nil || got != goldenFacts {
		t.Errorf("ParseRefresh of the second key's token = %+v, %v; want %+v", got, err, goldenFacts)
	}
	fresh := during.FormatRefresh(goldenFacts)
	if fresh != after.FormatRefresh(goldenFacts) || fresh == old {
		t.Error("a new token is not derived with the first key")
	}
	if got, err := during.ParseRefresh(fresh); err != nil || got != goldenFacts {
		t.Errorf("ParseRefresh of the first key's token = %+v, %v; want %+v", got, err, goldenFacts)
	}
	requireRefreshRefused(t, after, "the dropped key's token", old, token.ErrUnknownKey)
}

func TestMalformedRefreshTokensAreRefused(t *testing.T) {
	t.Parallel()
	ring := newRefreshKeyring(t, refreshKey(t, 0))
	digits, last := strings.TrimPrefix(goldenRefresh, refreshPrefix), len(goldenRefresh)-1
	for _, bad := range []string{
		"", refreshPrefix, digits, "rmk_" + digits, "RMR_" + digits, refreshPrefix + goldenRefresh, goldenRefresh[:last], goldenRefresh[:last-3],
		goldenRefresh + "A", goldenRefresh + "AAAA", goldenRefresh + "=", goldenRefresh + "\n", " " + goldenRefresh,
		goldenRefresh[:50] + "\n" + goldenRefresh[50:], goldenRefresh[:52] + "\r\r\r\r" + goldenRefresh[56:],
		refreshPrefix + strings.Repeat("\n", 92) + "AAAA", strings.Replace(goldenRefresh, "-", "+", 1), refreshPrefix + strings.Repeat("é", 48),
		refreshPrefix + strings.Repeat("\xff", 96),
		refreshPrefix + strings.Repeat("A", 1<<20), goldenAPIKey, goldenSecret, signAccess(t, ring, bearer()),
	} {
		requireRefreshRefused(t, ring, "malformed", bad, token.ErrMalformed)
	}
}

func TestParseRefreshKeyReadsBase64Of32Bytes(t *testing.T) {
	t.Parallel()
	good := base64.StdEncoding.EncodeToString(countUp(0xe0)) // + and / occur
	for _, text := range []string{good, good + "\n", good + "\r\n", "\n\t " + good + " \n\n"} {
		if _, err := token.ParseRefreshKey([]byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{
		"", " \n", base64.StdEncoding.EncodeToString(countUp(0)[:31]), base64.StdEncoding.EncodeToString(append(countUp(0), 1)),
		string(countUp(0)), hex.EncodeToString(countUp(0)), strings.TrimRight(good, "="), strings.NewReplacer("+", "-", "/", "_").Replace(good),
		replaceByte(good, 7, '!'), good[:8] + " " + good[8:], good[:42] + "9=", good + "\n" + good, good + " # current", `"` + good + `"`,
		strings.Repeat("A", 1<<20), string(pkcs8(rfc8037().private)),
	} {
		key, err := token.ParseRefreshKey([]byte(text))
		if !errors.Is(err, token.ErrKey) || key != nil {
			t.Errorf("%.99q: ParseRefreshKey returned a key: %t, and %v; want ErrKey", text, key != nil, err)
			continue
		}
		requireSaysNothingOf(t, err, text)
	}
}

func FuzzParseRefresh(f *testing.F) {
	ring := newRefreshKeyring(f, refreshKey(f, 0))
	for _, seed := range []string{
		"", refreshPrefix, goldenRefresh, goldenAPIKey, goldenRefresh + "\n", goldenRefresh + "=",
		goldenRefresh[:50] + "\n" + goldenRefresh[51:], strings.Replace(goldenRefresh, "-", "+", 1),
		ring.FormatRefresh(token.RefreshToken{}), refreshPrefix + strings.Repeat("A", 96),
		newRefreshKeyring(f, refreshKey(f, 1)).FormatRefresh(goldenFacts),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ring.ParseRefresh(text)
		if err != nil {
			if got != (token.RefreshToken{}) {
				t.Errorf("ParseRefresh(%q) = %+v and %v", text, got, err)
			}
			return
		}
		if again := ring.FormatRefresh(got); again != text {
			t.Errorf("%q is also written %q", text, again)
		}
	})
}
