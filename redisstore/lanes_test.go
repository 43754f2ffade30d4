package redisstore

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/money"
	"remit/redisproc"
)

// crowd makes the store believe that so many calls are under way that all share pipelines.
func crowd(t *testing.T, s *Store) {
	t.Helper()
	var mu sync.Mutex
	occupy := func(_ context.Context, server *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		s.lanes.of(server).underWay.Add(plainCalls)
		return nil
	}
	var err error
	switch client := s.client.Redis().(type) {
	case *redis.ClusterClient:
		err = client.ForEachMaster(t.Context(), occupy)
	case *redis.Client:
		err = occupy(t.Context(), client)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// aloneAndShared runs a test with calls that go by themselves, and with calls that share pipelines.
func aloneAndShared(t *testing.T, test func(t *testing.T, crowd func(*testing.T, *Store))) {
	t.Run("alone", func(t *testing.T) {
		t.Parallel()
		test(t, func(*testing.T, *Store) {})
	})
	t.Run("shared", func(t *testing.T) {
		t.Parallel()
		test(t, crowd)
	})
}

// pipelineSizes counts the commands of each pipeline of scripts, and how many pipelines are under way at once.
type pipelineSizes struct {
	mu            sync.Mutex
	sizes         []int
	now, together int
}

func (p *pipelineSizes) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (p *pipelineSizes) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (p *pipelineSizes) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		if commands[0].Name() != "evalsha" {
			return next(ctx, commands)
		}
		p.mu.Lock()
		p.sizes = append(p.sizes, len(commands))
		p.now++
		p.together = max(p.together, p.now)
		p.mu.Unlock()
		defer func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.now--
		}()
		return next(ctx, commands)
	}
}

func TestManyCallsAtOnceShareAFewPipelines(t *testing.T) {
	t.Parallel()
	onRealRedis(t, Config{}, func(t *testing.T, s *Store) {
		const callers, each = 300, 20
		w := newTenant(t, s, NewSession{MaxActions: callers * each, MaxValue: money.USD})
		token := byToken(w.exchange(t, s))
		seen := &pipelineSizes{}
		store := watched(t, s, func(string) redis.Hook { return seen })
		var group sync.WaitGroup
		var highest atomic.Int64
		for range callers {
			group.Go(func() {
				for range each {
					usage, err := store.Charge(context.Background(), token, w.session.ID, Charge{Count: 1, Value: 1})
					if err != nil {
						t.Error(err)
						return
					}
					for before := highest.Load(); usage.ActionCount > before && !highest.CompareAndSwap(before, usage.ActionCount); {
						before = highest.Load()
					}
				}
			})
		}
		group.Wait()
		if highest.Load() != callers*each {
			t.Errorf("%d charges were counted, want %d", highest.Load(), callers*each)
		}
		shared, largest := 0, 0
		for _, size := range seen.sizes {
			shared, largest = shared+size, max(largest, size)
		}
		if shared < callers || len(seen.sizes) > shared/2 {
			t.Errorf("%d calls shared %d pipelines", shared, len(seen.sizes))
		}
		if largest > laneCommands || seen.together > lanePipelines {
			t.Errorf("%d commands in one, %d at once: at most %d and %d", largest, seen.together, laneCommands, lanePipelines)
		}
		wantLanesEmpty(t, store)
	})
}

// wantLanesEmpty checks that nobody waits, and that nothing is left that would send.
func wantLanesEmpty(t *testing.T, s *Store) {
	t.Helper()
	s.lanes.mu.Lock()
	defer s.lanes.mu.Unlock()
	for _, l := range s.lanes.byAddress {
		eventually(t, "the lane is empty", func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.row.waiting == 0 && l.pipelines == 0 && l.underWay.Load() == 0
		})
	}
}

// TestAChargeWhoseReplyIsLost… has one call in the pipeline. Here are many: each that is in doubt was sent once.
func TestWhenASharedPipelinesReplyIsLostNoneOfItsCallsIsSentAgain(t *testing.T) {
	t.Parallel()
	onEachProxy(t, func(t *testing.T, s *Store, p *proxy) {
		const callers = 200
		w := newTenant(t, s, NewSession{MaxActions: 10 * callers, MaxValue: money.USD})
		token := byToken(w.exchange(t, s))
		loadScripts(t, s)
		crowd(t, s)
		p.loseReplies(chargeSession.sha, 2)
		var group sync.WaitGroup
		var acknowledged, unknown atomic.Int64
		for range callers {
			group.Go(func() {
				switch _, err := s.Charge(context.Background(), token, w.session.ID, Charge{Count: 1}); {
				case err == nil:
					acknowledged.Add(1)
				case errors.Is(err, ErrOutcomeUnknown):
					unknown.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		group.Wait()
		stored := must(s.Session(t.Context(), token, w.session.ID))(t).ActionCount
		if unknown.Load() == 0 || stored < acknowledged.Load() || stored > acknowledged.Load()+unknown.Load() {
			t.Errorf("%d acknowledged, %d in doubt, %d charged", acknowledged.Load(), unknown.Load(), stored)
		}
	})
}

// howMany returns how many wait.
func (l *lane) howMany() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.row.waiting
}

// stuckLane returns a lane whose pipelines are all under way, and will be for ever.
func stuckLane() *lane {
	l := newLane(nil)
	l.pipelines = lanePipelines
	return l
}

func someCommand() onceCmd { return onceCmd{redis.NewCmd(context.Background(), "ping")} }

// exhaust leaves the lane room for one pipeline and nothing for bursts.
func (l *lane) exhaust() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.row.credit, l.row.crowded = 0, time.Now().Add(time.Hour)
}

// Answering who is turned away costs about as much as a third of a call: were they turned away as fast as they come, then
// those who come again at once would leave no time for the others.
func TestNoMoreAreTurnedAwayThanAreServed(t *testing.T) {
	t.Parallel()
	const came = 4 * laneCommands
	l := stuckLane()
	l.exhaust()
	var group sync.WaitGroup
	var away atomic.Int64
	for range came {
		group.Go(func() {
			if err := l.share(context.Background(), time.Now().Add(time.Hour), flow{}, someCommand()); err != nil {
				away.Add(1)
				wantError(t, "who is turned away", err, errLaneFull)
				wantError(t, "a write", classify(err, writes), ErrOverloaded)
				wantError(t, "a write", classify(err, writes), ErrUnavailable)
			}
		})
	}
	eventually(t, "all came", func() bool { return l.howMany()+l.howManyInExcess() == came })
	for turn, want := range []int64{laneCommands, 2 * laneCommands} {
		aboard := l.board(nil)
		eventually(t, "some are told", func() bool { return away.Load() == want })
		if len(aboard) != laneCommands {
			t.Errorf("%d are served in turn %d", len(aboard), turn)
		}
		for _, p := range aboard {
			p.cmd.SetVal([]any{"ok"})
			p.done <- struct{}{}
		}
	}
	group.Wait()
}

func (l *lane) howManyInExcess() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.row.excess.length
}

// The flood is shed; others are not, nor is what ends it. What was shed never ran.
func TestAFloodOfOneOrganizationIsShedAndOthersAreServed(t *testing.T) {
	t.Parallel()
	server := startRedis(t, redisproc.Config{})
	s := openStore(t, Config{}, server.URL(), nil)
	flooding, calm := newTenant(t, s, NewSession{MaxActions: 1e9}), newTenant(t, s, NewSession{MaxActions: 1e9})
	flooder, other := byToken(flooding.exchange(t, s)), byToken(calm.exchange(t, s))
	l := s.lanes.of(s.client.Redis().(*redis.Client))
	l.exhaust()
	var group sync.WaitGroup
	var acknowledged, shed atomic.Int64
	for range 4 * laneCommands {
		group.Go(func() {
			for {
				switch _, err := s.Charge(context.Background(), flooder, flooding.session.ID, Charge{Count: 1}); {
				case err == nil:
					acknowledged.Add(1)
				case errors.Is(err, ErrOverloaded):
					shed.Add(1)
				case errors.Is(err, ErrInvalidToken): // its agent is revoked
					return
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	eventually(t, "some are shed", func() bool { return shed.Load() > 0 })
	for range 50 {
		must(s.Charge(t.Context(), other, calm.session.ID, Charge{Count: 1}))(t)
		must(s.Session(t.Context(), Caller{Key: &calm.key}, calm.session.ID))(t)
	}
	must(s.RevokeAgent(t.Context(), flooding.key, flooding.agent.ID))(t)
	group.Wait()
	stored := must(s.client.Redis().HGet(t.Context(), s.keys.session(flooding.agent.ID, flooding.session.ID), "n").Int64())(t)
	if stored != acknowledged.Load() {
		t.Errorf("%d were acknowledged and %d charged, %d shed", acknowledged.Load(), stored, shed.Load())
	}
	wantLanesEmpty(t, s)
}

// A forged key may name any organization: it must not fill that organization's share.
func TestCallsWithKeysThatNobodyHasSeenToBeGoodHaveNoOrganizationsShare(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		own := flow{Owner: w.key.Organization}
		forged := APIKey{Organization: w.key.Organization, Hash: [32]byte{9}}
		_, err := s.Organization(t.Context(), forged)
		wantError(t, "a forged key", err, ErrInvalidAPIKey)
		if got := s.proven.flow(forged); got != unprovenFlow {
			t.Errorf("a forged key has the flow %v", got)
		}
		must(s.Organization(t.Context(), w.key))(t)
		if got := s.proven.flow(w.key); got != own {
			t.Errorf("a good key has the flow %v, want %v", got, own)
		}
		if got := s.proven.urgent(w.key); got != (flow{own.organization, urgent}) {
			t.Errorf("what takes authority away has the flow %v", got)
		}
		must(s.RotateAPIKey(t.Context(), w.key, [32]byte{2}, 0, nil))(t)
		if got := s.proven.flow(APIKey{w.key.Organization, [32]byte{2}}); got != own {
			t.Errorf("the key that took its place has the flow %v", got)
		}
		if got := s.proven.flow(w.key); got != unprovenFlow {
			t.Errorf("a key that was rotated has the flow %v", got)
		}
	})
}

// A key's calls lose the share of their organization, and their urgency, when it is forgotten.
func TestNoOrganizationMakesTheKeyOfAnotherForgottenByRotatingItsOwn(t *testing.T) {
	t.Parallel()
	p := newProvenKeys()
	calm, busy := APIKey{uuid.New(), [32]byte{1}}, APIKey{uuid.New(), [32]byte{1}}
	p.note(calm, nil)
	for i := range maxProven + 1 {
		p.note(busy, nil)
		next := [32]byte{byte(i), byte(i >> 8), 1}
		p.rotated(busy, next, i%2 == 0)
		busy.Hash = next
	}
	if got := p.urgent(calm); got != (flow{calm.Organization, urgent}) {
		t.Errorf("the key of another organization has the flow %v", got)
	}
}

func TestBothKeysOfARotationWithGraceHaveTheirOrganizationsShareUntilOneIsRefused(t *testing.T) {
	t.Parallel()
	p := newProvenKeys()
	old := APIKey{uuid.New(), [32]byte{1}}
	next, own := APIKey{old.Organization, [32]byte{2}}, flow{Owner: old.Organization}
	p.note(old, nil)
	p.rotated(old, next.Hash, false)
	p.note(APIKey{old.Organization, [32]byte{9}}, ErrInvalidAPIKey) // a forged one says nothing of them
	if p.flow(old) != own || p.flow(next) != own {
		t.Errorf("within the grace the keys have the flows %v and %v", p.flow(old), p.flow(next))
	}
	p.note(old, ErrInvalidAPIKey)
	if p.flow(old) != unprovenFlow || p.flow(next) != own {
		t.Errorf("after it the keys have the flows %v and %v", p.flow(old), p.flow(next))
	}
}

// Forged keys cost nothing to make: as many as there may be, an exchange waits for one of them at the most.
func TestExchangesDoNotWaitForAFloodOfForgedKeys(t *testing.T) {
	t.Parallel()
	p, r := newProvenKeys(), &row{room: 1000}
	forged := p.of(Caller{Key: &APIKey{uuid.New(), [32]byte{9}}, urgent: true})
	if forged == (flow{}) || forged.organization != uuid.Nil || forged.kind == urgent {
		t.Fatalf("a forged key has the flow %v", forged)
	}
	arrive(r, forged, 900, time.Now())
	arrive(r, flow{}, 1, time.Now())
	if served := serve(r, 2); served[flow{}] != 1 {
		t.Error("an exchange waits for forged keys")
	}
}

// Its signature is good for up to an hour more.
func TestARevokedAgentHasNoOrganizationsShareOnceItsTokenWasRefused(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10})
		grant := w.exchange(t, s)
		calls := map[string]func(Caller) error{
			"charge": func(c Caller) error {
				_, err := s.Charge(t.Context(), c, w.session.ID, Charge{Count: 1})
				return err
			},
			"batch":  func(c Caller) error { return chargeTwice(t.Context(), s, c, w.session.ID, nil) },
			"begin":  func(c Caller) error { _, err := s.Begin(t.Context(), *c.Token, NewTransaction{}); return err },
			"check":  func(c Caller) error { return s.CheckToken(t.Context(), *c.Token) },
			"list":   func(c Caller) error { _, err := s.Sessions(t.Context(), c, Query{Limit: 1}); return err },
			"events": func(c Caller) error { _, _, err := s.Events(t.Context(), c, w.agent.ID, "", 1); return err },
		}
		held := s.Remembered(grant.AccessToken)
		must(s.Charge(t.Context(), Caller{Token: held}, w.session.ID, Charge{Count: 1}))(t)
		if got := held.flow(); got != (flow{Owner: w.key.Organization}) {
			t.Errorf("a live token has the flow %v", got)
		}
		must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
		for name, call := range calls {
			held := s.Remembered(grant.AccessToken)
			wantError(t, name, call(Caller{Token: held}), ErrInvalidToken)
			if got := held.flow(); got != unprovenFlow {
				t.Errorf("%s: a token that was refused has the flow %v", name, got)
			}
		}
	})
}

// While Redis is stuck nobody waits for it but those few who try; what waited before is told as soon as it is known.
func TestNobodyWaitsForAStuckRedisUntilItAnswersAgain(t *testing.T) {
	t.Parallel()
	server := startRedis(t, redisproc.Config{})
	s := openStore(t, Config{}, server.URL(), nil)
	w := newTenant(t, s, NewSession{MaxActions: 1e9})
	token := byToken(w.exchange(t, s))
	charge := func() error {
		_, err := s.Charge(context.Background(), token, w.session.ID, Charge{Count: 1})
		return err
	}
	crowd(t, s)
	resume := suspend(t, server)
	var ended, trying sync.WaitGroup
	for range 4 * laneCommands {
		ended.Go(func() { wantTrouble(t, charge()) })
	}
	waitAtMost(t, 2*callTimeout, &ended)
	l := s.lanes.of(s.client.Redis().(*redis.Client))
	if !l.stuck.Load() {
		t.Fatal("the lane is not stuck")
	}
	trying.Go(func() {
		if err := charge(); err != nil { // it may be answered after all
			wantTrouble(t, err)
		}
	})
	eventually(t, "one tries", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.pipelines == 1
	})
	for range 1000 { // one after the other: a second for each would be a quarter of an hour
		if err := charge(); !errors.Is(err, ErrOverloaded) && !errors.Is(err, ErrOutcomeUnknown) {
			t.Fatal(err)
		}
	}
	if calls := l.underWay.Load() - plainCalls; calls > 1 || l.howMany() > 0 { // crowd has added plainCalls
		t.Errorf("%d calls are under way and %d wait", calls, l.howMany())
	}
	resume()
	trying.Wait()
	eventually(t, "it works again", func() bool { return charge() == nil })
	if l.stuck.Load() {
		t.Error("it is still held to be stuck")
	}
}

func wantTrouble(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("from a stuck Redis: %v", err)
	}
}

func TestWhoLeavesTheLaneIsNotSent(t *testing.T) {
	t.Parallel()
	l := stuckLane()
	before := &passenger{}
	wantError(t, "entering", l.enter(before), nil)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() { left <- l.share(ctx, time.Now().Add(time.Hour), flow{}, someCommand()) }()
	eventually(t, "two wait", func() bool { return l.howMany() == 2 })
	cancel()
	err := <-left
	wantError(t, "who left", err, errLeftLane)
	wantError(t, "a write", classify(err, writes), ErrUnavailable)
	if l.row.waiting != 1 || l.row.take() != before {
		t.Errorf("%d wait", l.row.waiting)
	}
}

func TestWhoLeavesWhenTheCommandIsUnderWayIsInDoubt(t *testing.T) {
	t.Parallel()
	l := stuckLane()
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() { left <- l.share(ctx, time.Now().Add(time.Hour), flow{}, someCommand()) }()
	eventually(t, "it waits", func() bool { return l.howMany() == 1 })
	aboard := l.board(nil)
	cancel()
	err := <-left
	wantError(t, "who left", err, context.Canceled)
	wantError(t, "a write that is not written yet", (&command{}).classify(err, writes), ErrOutcomeUnknown)
	aboard[0].done <- struct{}{} // nobody listens, and nothing hangs
}

func TestWhoHasWaitedTooLongIsNotSent(t *testing.T) {
	t.Parallel()
	client := plainClient(t, startRedis(t, redisproc.Config{}).URL())
	l := newLane(client)
	now := time.Now()
	increment := func() onceCmd { return onceCmd{redis.NewCmd(context.Background(), "incr", "calls")} }
	late, inTime := increment(), increment()
	aboard := []*passenger{
		{cmd: late, deadline: now.Add(laneTime - time.Millisecond), done: make(chan struct{}, 1)},
		{cmd: inTime, deadline: now.Add(time.Minute), done: make(chan struct{}, 1)},
	}
	l.sendOne(aboard)
	for _, p := range aboard {
		<-p.done
	}
	wantError(t, "the late one", late.Err(), errLaneLate)
	wantError(t, "a write", classify(late.Err(), writes), ErrUnavailable)
	if calls, err := inTime.Int(); calls != 1 || err != nil {
		t.Errorf("%d calls, %v", calls, err)
	}
}

func TestASharedCallEndsByItsDeadlineWhenRedisIsStuck(t *testing.T) {
	t.Parallel()
	server := startRedis(t, redisproc.Config{})
	s := openStore(t, Config{}, server.URL(), nil)
	w := newTenant(t, s, NewSession{MaxActions: 10})
	token := byToken(w.exchange(t, s))
	crowd(t, s)
	must(plainClient(t, server.URL()).Do(t.Context(), "CLIENT", "PAUSE", 60_000, "ALL").Result())(t)
	var group sync.WaitGroup
	for range 3 * laneCommands { // more than are under way at once
		group.Go(func() {
			_, err := s.Charge(context.Background(), token, w.session.ID, Charge{Count: 1})
			if !errors.Is(err, ErrOutcomeUnknown) && !errors.Is(err, ErrUnavailable) {
				t.Errorf("%v", err)
			}
		})
	}
	group.Wait() // it hangs unless every call ends
}

func TestAPanicInASharedPipelineIsAnErrorOfItsCalls(t *testing.T) {
	t.Parallel()
	l := newLane(nil) // of no server
	p := &passenger{cmd: someCommand(), deadline: time.Now().Add(time.Hour), done: make(chan struct{}, 1)}
	l.sendOne([]*passenger{p})
	<-p.done
	if p.cmd.Err() == nil {
		t.Error("no error")
	}
}

// breaking returns a client of a server that answers so many pings of a connection, and closes it at the next.
func breaking(t *testing.T, answered int) *redis.Client {
	t.Helper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { answerSome(conn, answered) })
		}
	})
	client := redis.NewClient(&redis.Options{Addr: listener.Addr().String(), Protocol: 2, MaxRetries: -1, DisableIdentity: true})
	t.Cleanup(func() {
		_ = client.Close()
		_ = listener.Close()
		serving.Wait()
	})
	return client
}

func answerSome(conn net.Conn, answered int) {
	defer conn.Close()
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		switch strings.ToLower(lines.Text()) {
		case "hello":
			_, _ = io.WriteString(conn, "-ERR unknown command\r\n")
		case "ping":
			if answered--; answered < 0 {
				return
			}
			_, _ = io.WriteString(conn, "*2\r\n$2\r\nok\r\n$1\r\n7\r\n")
		}
	}
}

func TestWhatWasAnsweredBeforeAPipelineBrokeIsAnswered(t *testing.T) {
	t.Parallel()
	const sent, answered = 9, 4
	l := newLane(breaking(t, answered))
	var aboard []*passenger
	for range sent {
		aboard = append(aboard, &passenger{cmd: someCommand(), deadline: time.Now().Add(time.Hour), done: make(chan struct{}, 1)})
	}
	l.sendOne(aboard)
	for i, p := range aboard {
		values, err := p.cmd.answer()
		if i < answered && (err != nil || len(values) != 2) || i >= answered && classify(err, writes) == nil {
			t.Errorf("%d: %v, %v", i, values, err)
		}
		if i >= answered {
			wantError(t, "a write", classify(err, writes), ErrOutcomeUnknown)
		}
	}
}

func TestALaneIsOfOneServerAndForgottenWithIt(t *testing.T) {
	t.Parallel()
	var all lanes
	first, second := redis.NewClient(&redis.Options{Addr: "a:1"}), redis.NewClient(&redis.Options{Addr: "a:2"})
	again := redis.NewClient(&redis.Options{Addr: "a:1"}) // the node has left the cluster and come back
	for _, client := range []*redis.Client{first, second, again} {
		defer client.Close()
	}
	own := all.of(first)
	if all.of(first) != own || all.of(second) == own {
		t.Error("a server has not one lane of its own")
	}
	if l := all.of(again); l == own || l.server != again {
		t.Error("the lane is of a client that is closed")
	}
	if len(all.byAddress) != 2 {
		t.Errorf("%d lanes of 2 addresses", len(all.byAddress))
	}
}

// A new connection may be refused by an answer of Redis, which go-redis gives to none of the pipeline's commands.
func TestWhenANewConnectionIsRefusedNothingIsInDoubt(t *testing.T) {
	t.Parallel()
	server := startRedis(t, redisproc.Config{})
	admin := plainClient(t, server.URL())
	must(admin.Do(t.Context(), "ACL", "SETUSER", "remit", "on", ">before", "~*", "+@all").Result())(t)
	s := openStore(t, Config{}, strings.Replace(server.URL(), "unix://", "unix://remit:before@", 1), nil)
	w := newTenant(t, s, NewSession{MaxActions: 10})
	token := byToken(w.exchange(t, s))
	must(s.Charge(t.Context(), token, w.session.ID, Charge{Count: 1}))(t)
	must(admin.Do(t.Context(), "ACL", "SETUSER", "remit", "resetpass", ">after").Result())(t)
	must(admin.Do(t.Context(), "CLIENT", "KILL", "USER", "remit").Result())(t)
	crowd(t, s)
	_, err := s.Charge(t.Context(), token, w.session.ID, Charge{Count: 1})
	wantError(t, "a charge", err, ErrUnavailable)
	outcomes := must(s.ChargeBatch(t.Context(), token, []BatchCharge{{w.session.ID, Charge{Count: 1}}}, nil))(t)
	wantError(t, "a batch", outcomes[0].Err, ErrUnavailable)
}

func TestASharedCallEndsWithItsCallersTimeToo(t *testing.T) {
	t.Parallel()
	aloneAndShared(t, func(t *testing.T, crowd func(*testing.T, *Store)) {
		server := startRedis(t, redisproc.Config{})
		s := openStore(t, Config{}, server.URL(), nil)
		w := newTenant(t, s, NewSession{MaxActions: 10})
		grant := w.exchange(t, s)
		crowd(t, s)
		must(plainClient(t, server.URL()).Do(t.Context(), "CLIENT", "PAUSE", 60_000, "ALL").Result())(t)
		ctx, cancel := context.WithTimeout(t.Context(), 2*laneTime)
		defer cancel()
		began := time.Now()
		wantError(t, "a read", s.CheckToken(ctx, grant.AccessToken), ErrUnavailable)
		if time.Since(began) >= ioTimeout {
			t.Error("it waited for the time that is meant for all calls")
		}
	})
}

func TestWhatAPipelineTellsOfRedis(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: errors.New("refused")}
	for name, test := range map[string]struct {
		took         time.Duration
		err          error
		stuck, paced bool
	}{
		"answered":                    {time.Millisecond, nil, false, true},
		"answered, slowly":            {2 * stuckTime, nil, false, true},
		"an error of Redis":           {time.Millisecond, serverError("OOM"), false, true},
		"refused at once":             {time.Millisecond, refused, false, false},
		"no answer":                   {2 * stuckTime, io.EOF, true, false},
		"no connection free":          {2 * stuckTime, redis.ErrPoolTimeout, false, false},
		"no connection may be made":   {2 * stuckTime, redis.ErrPoolExhausted, false, false},
		"no answer, but not for long": {time.Millisecond, io.EOF, false, false},
	} {
		l := newLane(nil)
		l.boarded = time.Now().Add(-test.took)
		l.ended(laneCommands, test.err)
		if stuck, paced := l.stuck.Load(), l.pace > 0; stuck != test.stuck || paced != test.paced {
			t.Errorf("%s: stuck %t, a pace %t", name, stuck, paced)
		}
	}
}

func TestWhoIsTurnedAwayHearsOfItInTime(t *testing.T) {
	t.Parallel()
	l := newLane(nil)
	late := &passenger{cmd: someCommand(), deadline: time.Now().Add(laneTime / 2), done: make(chan struct{}, 1)}
	calm := &passenger{cmd: someCommand(), deadline: time.Now().Add(time.Hour), done: make(chan struct{}, 1)}
	l.row.excess.add(late)
	l.row.excess.add(calm)
	l.turnAway(0)
	if l.row.excess.length != 1 || l.row.excess.first != calm {
		t.Errorf("%d wait on", l.row.excess.length)
	}
	wantError(t, "the late one", late.cmd.Err(), errLaneFull)
}
