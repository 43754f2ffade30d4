package jwksfetch

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"
	"remit/internal/outbound"
	"remit/internal/token"
	"remit/test/prover"
	"remit/test/suite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type clock struct{ at atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.advance(time.Duration(time.Now().UnixNano()))
	return c
}

func (c *clock) now() time.Time          { return time.Unix(0, c.at.Load()) }
func (c *clock) advance(d time.Duration) { c.at.Add(int64(d)) }

type host struct {
	*httptest.Server
	asked  atomic.Int64
	answer atomic.Pointer[http.HandlerFunc]
}

func newHost(t *testing.T, answer http.HandlerFunc) *host {
	t.Helper()
	h := &host{}
	h.answer.Store(&answer)
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.asked.Add(1)
		(*h.answer.Load())(w, r)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *host) becomes(answer http.HandlerFunc) { h.answer.Store(&answer) }

func (h *host) wasAsked(t *testing.T, times int64) {
	t.Helper()
	wantEqual(t, "requests to the host", h.asked.Load(), times)
}

func publishing(keys map[string]*prover.Key) http.HandlerFunc {
	var texts []string
	for kid, key := range keys {
		jwk := key.JWK()
		texts = append(texts, fmt.Sprintf(`{"kid":%q,"kty":%q,"crv":%q,"x":%q}`, kid, jwk["kty"], jwk["crv"], jwk["x"]))
	}
	return says(`{"keys":[` + strings.Join(texts, ",") + `]}`)
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
}

func newFetcher(t *testing.T, cfg Config) *Fetcher {
	t.Helper()
	f := New(cfg)
	t.Cleanup(f.Close)
	return f
}

func signedBy(t *testing.T, key *prover.Key, kid string) *token.Assertion {
	t.Helper()
	return suite.Must(token.ParseAssertion(key.Sign(map[string]any{"alg": key.Algorithm, "kid": kid}, map[string]any{"sub": "a"})))(t)
}

func waitFor(want int64, counted func() int64) {
	for counted() < want {
		time.Sleep(time.Millisecond)
	}
}

// wants fails unless verifying an assertion that the key signed has this outcome.
func (f *Fetcher) wants(t *testing.T, source Source, key *prover.Key, kid string, want error) {
	t.Helper()
	if err := f.Verify(t.Context(), source, signedBy(t, key, kid)); !errors.Is(err, want) {
		t.Errorf("kid %q of %s: %v, want %v", kid, source.URL, err, want)
	}
}

func TestPublishedKeysAreReadOnceInFiveMinutes(t *testing.T) {
	t.Parallel()
	key, at := prover.New("EdDSA"), newClock()
	h := newHost(t, publishing(map[string]*prover.Key{"a": key}))
	f := newFetcher(t, Config{AllowPrivate: true, Now: at.now})
	source := Source{uuid.New(), h.URL, 8}
	verify := func() { f.wants(t, source, key, "a", nil) }
	var all sync.WaitGroup
	for range 20 {
		all.Go(verify)
	}
	all.Wait()
	h.wasAsked(t, 1)
	at.advance(freshTime - time.Second)
	verify()
	h.wasAsked(t, 1)
	at.advance(time.Second)
	verify()
	h.wasAsked(t, 2)
	f.wants(t, Source{uuid.New(), h.URL, 8}, key, "a", nil) // of another organization
	h.wasAsked(t, 3)
}

func TestRotatedKeysAreFoundWithinAMinute(t *testing.T) {
	t.Parallel()
	older, newer, stranger, at := prover.New("EdDSA"), prover.New("EdDSA"), prover.New("EdDSA"), newClock()
	h := newHost(t, publishing(map[string]*prover.Key{"a": older}))
	f := newFetcher(t, Config{AllowPrivate: true, Now: at.now})
	source := Source{uuid.New(), h.URL, 8}
	f.wants(t, source, older, "a", nil)
	h.becomes(publishing(map[string]*prover.Key{"b": newer}))
	f.wants(t, source, newer, "b", token.ErrUnknownKey) // it was read this minute
	h.wasAsked(t, 1)
	at.advance(rereadPause)
	f.wants(t, source, newer, "b", nil)
	h.wasAsked(t, 2)
	f.wants(t, source, older, "a", token.ErrUnknownKey)
	for range 100 {
		f.wants(t, source, stranger, "c", token.ErrUnknownKey)
		f.wants(t, source, stranger, "b", token.ErrSignature)
	}
	h.wasAsked(t, 2)
	at.advance(rereadPause)
	f.wants(t, source, stranger, "", token.ErrSignature)
	f.wants(t, source, stranger, "", token.ErrSignature)
	h.wasAsked(t, 3)
}

func TestKeysOutliveTheirHostForAnHour(t *testing.T) {
	t.Parallel()
	key, at := prover.New("EdDSA"), newClock()
	good := publishing(map[string]*prover.Key{"a": key})
	h := newHost(t, good)
	f := newFetcher(t, Config{AllowPrivate: true, Now: at.now})
	source := Source{uuid.New(), h.URL, 8}
	f.wants(t, source, key, "a", nil)
	h.becomes(http.NotFound)
	at.advance(freshTime)
	f.wants(t, source, key, "a", nil)
	f.wants(t, source, key, "a", nil)
	h.wasAsked(t, 2) // a failure is not repeated at once
	at.advance(staleTime - freshTime - time.Second)
	f.wants(t, source, key, "a", nil)
	h.wasAsked(t, 3)
	at.advance(rereadPause)
	f.wants(t, source, key, "a", ErrNoKeys)
	f.wants(t, source, key, "a", ErrNoKeys)
	h.wasAsked(t, 4)
	h.becomes(good)
	at.advance(failedPause)
	f.wants(t, source, key, "a", nil)
}

func TestAHostThatPublishesNoKeysIsRefused(t *testing.T) {
	t.Parallel()
	key := prover.New("EdDSA")
	good := publishing(map[string]*prover.Key{"a": key})
	elsewhere := newHost(t, good)
	for cause, answers := range map[error][]http.HandlerFunc{
		errRedirect: {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }},
		errTooLarge: {
			func(w http.ResponseWriter, _ *http.Request) {
				for range 100 {
					if _, err := w.Write(make([]byte, 1<<20)); err != nil {
						return
					}
				}
			},
			func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "100000000") }, // which it only announces
			says(`{"keys":[],"x":"` + strings.Repeat("x", maxSet) + `"}`),
		},
		errFailed: {
			func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) },
			func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		},
		errStatus: {http.NotFound, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }},
		errSet: {
			says("hello"), says(""), says(`{"keys":[]}`), says(`{"keys":[{"kty":"oct","k":"AAAA"}]}`), says(`{"keys":[],"keys":[]}`),
			says(`{"keys":` + strings.Repeat("[", 60_000) + `}`),
			says(`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","d":"AA"}]}`),
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				_, _ = w.Write([]byte("\x1f\x8b"))
			},
		},
	} {
		for i, answer := range answers {
			t.Run(fmt.Sprintf("%v %d", cause, i), func(t *testing.T) {
				t.Parallel()
				h := newHost(t, answer)
				f := newFetcher(t, Config{AllowPrivate: true})
				source := Source{uuid.New(), h.URL, 8}
				wantEqual(t, "exactly", f.Verify(t.Context(), source, signedBy(t, key, "a")), ErrNoKeys)
				_, _, err := f.fetch(source, f.cache.entry(source).tenant)
				wantEqual(t, "the cause", err, cause)
			})
		}
	}
	t.Cleanup(func() { elsewhere.wasAsked(t, 0) })
}

func TestKeysOfAPrivateAddressAreNotRead(t *testing.T) {
	t.Parallel()
	key := prover.New("EdDSA")
	h := newHost(t, publishing(map[string]*prover.Key{"a": key}))
	f := newFetcher(t, Config{})
	port := h.URL[strings.LastIndexByte(h.URL, ':'):]
	for _, at := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"} {
		source := Source{uuid.New(), "http://" + at + port, 8}
		wantEqual(t, at, f.Verify(t.Context(), source, signedBy(t, key, "a")), ErrNoKeys)
		_, _, err := f.fetch(source, f.cache.entry(source).tenant)
		wantEqual(t, at+": the cause", err, outbound.ErrPrivateAddress)
	}
	h.wasAsked(t, 0)
}

func TestOnlyTheFirstKeysOfASetAreUsed(t *testing.T) {
	t.Parallel()
	keys := map[string]*prover.Key{}
	for i := range 9 {
		keys[fmt.Sprint(i)] = prover.New("EdDSA")
	}
	h := newHost(t, publishing(keys))
	f := newFetcher(t, Config{AllowPrivate: true})
	for most, want := range map[int]int{8: 8, 64: 9} {
		set, err := f.keys(t.Context(), Source{uuid.New(), h.URL, most}, false)
		if err != nil || len(set.keys) != want {
			t.Errorf("%d keys at most: %d, %v", most, len(set.keys), err)
		}
	}
}

// slowly answers nothing until its test ends or its client is gone.
func slowly(t *testing.T) http.HandlerFunc {
	t.Helper()
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	return func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-done:
		case <-r.Context().Done():
		}
	}
}

func TestASlowHostDelaysOnlyItsOwnOrganization(t *testing.T) {
	t.Parallel()
	key := prover.New("EdDSA")
	quick := newHost(t, publishing(map[string]*prover.Key{"a": key}))
	slow := newHost(t, slowly(t))
	f := newFetcher(t, Config{AllowPrivate: true})
	hostile := uuid.New()
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			_ = f.Verify(t.Context(), Source{hostile, fmt.Sprint(slow.URL, "/", i), 8}, signedBy(t, key, "a"))
		})
	}
	waitFor(placesOfTenant, slow.asked.Load)
	began := time.Now()
	if err := f.Verify(t.Context(), Source{uuid.New(), quick.URL, 8}, signedBy(t, key, "a")); err != nil || time.Since(began) > time.Second {
		t.Errorf("another organization's keys: %v after %s", err, time.Since(began))
	}
	slow.wasAsked(t, placesOfTenant) // at once
	f.stop()                         // so that the test need not wait for the times of the fetches
	all.Wait()
}

func TestFewRequestsWaitForTheKeysOfOneOrganization(t *testing.T) {
	t.Parallel()
	slow := newHost(t, slowly(t))
	f := newFetcher(t, Config{AllowPrivate: true})
	source, a := Source{uuid.New(), slow.URL, 8}, signedBy(t, prover.New("EdDSA"), "a")
	waiting := func() int64 {
		f.mu.Lock()
		defer f.mu.Unlock()
		return int64(f.cache.entry(source).tenant.waiting)
	}
	var all sync.WaitGroup
	for range maxWaiting {
		all.Go(func() { _ = f.Verify(t.Context(), source, a) })
	}
	waitFor(maxWaiting, waiting)
	began := time.Now()
	if err := f.Verify(t.Context(), source, a); err != ErrNoKeys || time.Since(began) > time.Second {
		t.Errorf("another request: %v after %s", err, time.Since(began))
	}
	f.stop()
	all.Wait()
	wantEqual(t, "callers that wait still", waiting(), 0)
}

func TestOrganizationsWithSlowHostsHavePlacesOfTheirOwn(t *testing.T) {
	t.Parallel()
	key, at := prover.New("EdDSA"), newClock()
	quick := newHost(t, publishing(map[string]*prover.Key{"a": key}))
	slow := newHost(t, slowly(t))
	f := newFetcher(t, Config{AllowPrivate: true, Now: at.now})
	f.most.fetch, f.most.soon = 50*time.Millisecond, 10*time.Millisecond
	hostile := make([]uuid.UUID, 20)
	for i := range hostile { // each is found to be slow
		hostile[i] = uuid.New()
		_ = f.Verify(t.Context(), Source{hostile[i], slow.URL, 8}, signedBy(t, key, "a"))
	}
	f.mu.Lock()
	f.most = usualTimes
	f.mu.Unlock()
	asked := slow.asked.Load()
	var all sync.WaitGroup
	for _, tenant := range hostile {
		for i := range 2 {
			all.Go(func() {
				_ = f.Verify(t.Context(), Source{tenant, fmt.Sprint(slow.URL, "/", i), 8}, signedBy(t, key, "a"))
			})
		}
	}
	waitFor(asked+places, slow.asked.Load)
	for range 20 {
		f.wants(t, Source{uuid.New(), quick.URL, 8}, key, "a", nil) // another organization's
	}
	slow.wasAsked(t, asked+places)
	f.stop()
	all.Wait()
}

// A creator of organizations could else hold all quick places, with a few new ones at a time.
func TestSlowHostsOfNewOrganizationsGiveUpTheirQuickPlaces(t *testing.T) {
	t.Parallel()
	key := prover.New("EdDSA")
	quick := newHost(t, publishing(map[string]*prover.Key{"a": key}))
	slow := newHost(t, slowly(t))
	f := newFetcher(t, Config{AllowPrivate: true})
	f.most.soon, f.most.wait = 500*time.Millisecond, time.Minute // a busy machine may need 100 ms for the quick host, too
	var all sync.WaitGroup
	for range 3 * places {
		all.Go(func() { _ = f.Verify(t.Context(), Source{uuid.New(), slow.URL, 8}, signedBy(t, key, "a")) })
	}
	waitFor(places, slow.asked.Load)
	for range 3 {
		f.wants(t, Source{uuid.New(), quick.URL, 8}, key, "a", nil) // another organization's
	}
	if quick, slow := f.lanes.Taken(); quick > places || slow > places {
		t.Errorf("%d and %d places are taken", quick, slow)
	}
	f.stop()
	all.Wait()
	f.Close()
	if quick, slow := f.lanes.Taken(); quick != 0 || slow != 0 {
		t.Errorf("%d and %d places are taken after all fetches", quick, slow)
	}
}

func TestAnOrganizationThatReadsAllTheTimeLeavesTheQuickPlacesToOthers(t *testing.T) {
	t.Parallel()
	key, at := prover.New("EdDSA"), newClock()
	published := publishing(map[string]*prover.Key{"a": key})
	h := newHost(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Millisecond) // the fetch takes as long
		published(w, r)
	})
	f := newFetcher(t, Config{AllowPrivate: true, Now: at.now})
	f.most.burst, f.most.soon = 20*time.Millisecond, time.Minute
	greedy := uuid.New()
	for i := range 20 {
		f.wants(t, Source{greedy, fmt.Sprint(h.URL, "/", i), 8}, key, "a", nil)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !at.now().Before(f.cache.tenants[greedy].slowUntil) {
		t.Error("an organization that read for more than 20 ms without a pause has a quick place still")
	}
}

func TestReadsThatTakeAQuarterOfTheTimeAreNotTooMany(t *testing.T) {
	t.Parallel()
	at := time.Unix(1<<30, 0)
	of := &tenant{usedAt: at}
	for range 100 {
		at = at.Add(time.Second)
		if of.spend(time.Second/quickShare, time.Second, at) {
			t.Fatal("a quarter of each second is too much")
		}
	}
	for i := range 4 { // each leaves a quarter of a second
		at = at.Add(time.Second)
		wantEqual(t, fmt.Sprintf("half of each second for %d seconds is too much", i+1), of.spend(time.Second/2, time.Second, at), i == 3)
	}
	if at = at.Add(time.Hour); of.spend(time.Second, time.Second, at) {
		t.Error("the burst is too much after an hour")
	}
}

func TestAFetchEndsInTime(t *testing.T) {
	t.Parallel()
	slow := newHost(t, slowly(t))
	drip := newHost(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = w.Write([]byte(" "))
			_ = http.NewResponseController(w).Flush()
			time.Sleep(5 * time.Millisecond)
		}
	})
	for _, h := range []*host{slow, drip} {
		f := newFetcher(t, Config{AllowPrivate: true})
		f.most.fetch = 100 * time.Millisecond
		source := Source{uuid.New(), h.URL, 8}
		began := time.Now()
		if _, _, err := f.fetch(source, f.cache.entry(source).tenant); err != errTimeout || time.Since(began) > 5*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	}
}

func TestWhoWaitsForKeysMayGiveUpAndCloseEndsFetches(t *testing.T) {
	t.Parallel()
	slow := newHost(t, slowly(t))
	f := New(Config{AllowPrivate: true})
	left := make(chan error, 1)
	go func() {
		left <- f.Verify(t.Context(), Source{uuid.New(), slow.URL, 8}, signedBy(t, prover.New("EdDSA"), "a"))
	}()
	waitFor(1, slow.asked.Load)
	f.Close()
	wantEqual(t, "after Close", <-left, ErrNoKeys)
	f.wants(t, Source{uuid.New(), slow.URL, 8}, prover.New("EdDSA"), "a", ErrNoKeys)
	slow.wasAsked(t, 1)
}

func wantEqual[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
