package redisstore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/money"
	"remit/redisproc"
)

// pair is a primary and a replica that follows it.
type pair struct {
	url              string // of the primary, for a store
	primary, replica string // addresses
	replicaPID       int
	link             *proxy // by which the replica follows, but in a cluster
}

// startPair runs a pair of the test's own. Of a cluster it is all that there is.
func startPair(t *testing.T, cluster bool) *pair {
	t.Helper()
	skipIfShort(t)
	if cluster {
		c := must(redisproc.StartClusterWithReplicas(t.Context(), 1, t.TempDir()))(t)
		t.Cleanup(func() { _ = c.Stop() })
		return &pair{url: c.URL(), primary: c.Addrs()[0], replica: c.Addrs()[1], replicaPID: c.PID(1)}
	}
	p := &pair{}
	_, p.primary = startOnPort(t, redisproc.Config{})
	p.url, p.link = "redis://"+p.primary, newProxy(t, p.primary)
	var replica *redisproc.Server
	replica, p.replica = startOnPort(t, redisproc.Config{ReplicaOf: p.link.address})
	p.replicaPID = replica.PID()
	client := plainClient(t, "redis://"+p.replica)
	eventually(t, "the replica follows", func() bool {
		return strings.Contains(client.Info(t.Context(), "replication").Val(), "master_link_status:up")
	})
	return p
}

func startOnPort(t *testing.T, cfg redisproc.Config) (server *redisproc.Server, address string) {
	t.Helper()
	cfg.Port = must(redisproc.FreePort())(t)
	return startRedis(t, cfg), net.JoinHostPort("127.0.0.1", strconv.Itoa(cfg.Port))
}

// suspendReplica stops the replica without ending it, until resume or the end of the test.
func (p *pair) suspendReplica(t *testing.T) (resume func()) {
	t.Helper()
	if err := syscall.Kill(p.replicaPID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	resume = func() { _ = syscall.Kill(p.replicaPID, syscall.SIGCONT) }
	t.Cleanup(resume)
	return resume
}

// store returns one that acknowledges what the replica has.
func (p *pair) store(t *testing.T, d Durability) *Store {
	t.Helper()
	return openStore(t, Config{Durability: d}, p.url, nil)
}

// actionsAt returns how many actions of the session the server counts.
func actionsAt(t *testing.T, s *Store, address string, w tenant) int64 {
	t.Helper()
	options := &redis.Options{Addr: address, Protocol: 2, MaxRetries: -1}
	client := redis.NewClient(options)
	defer client.Close()
	var count *redis.StringCmd
	_, err := client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		p.Do(t.Context(), "READONLY") // which lets a cluster's replica answer, and which others do not know
		count = p.HGet(t.Context(), s.keys.session(w.agent.ID, w.session.ID), "n")
		return nil
	})
	if _, parsed := strconv.Atoi(count.Val()); parsed != nil {
		t.Fatalf("actions at %s: %v, %v", address, err, count)
	}
	return must(count.Int64())(t)
}

// onEachPair runs a test on a pair by itself and on one that is a cluster, with calls by themselves and with shared ones.
func onEachPair(t *testing.T, test func(t *testing.T, p *pair, crowd func(*testing.T, *Store))) {
	t.Helper()
	for name, cluster := range map[string]bool{"redis": false, "cluster": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			aloneAndShared(t, func(t *testing.T, crowd func(*testing.T, *Store)) {
				test(t, startPair(t, cluster), func(t *testing.T, s *Store) { crowdConfirmed(t, s, crowd) })
			})
		})
	}
}

// crowdConfirmed makes the store believe that so many calls are under way, of those that are confirmed too.
func crowdConfirmed(t *testing.T, s *Store, crowd func(*testing.T, *Store)) {
	t.Helper()
	crowd(t, s)
	for _, l := range s.lanes.byAddress {
		l.confirmed.underWay.Add(l.underWay.Load())
	}
}

func TestWhatIsAcknowledgedIsOnTheReplica(t *testing.T) {
	t.Parallel()
	onEachPair(t, func(t *testing.T, p *pair, crowd func(*testing.T, *Store)) {
		s := p.store(t, Replicated)
		w := newTenant(t, s, NewSession{MaxActions: 1000, MaxValue: money.USD})
		token := byToken(w.exchange(t, s))
		crowd(t, s)
		for range 50 {
			usage := must(s.Charge(t.Context(), token, w.session.ID, Charge{Count: 1}))(t)
			if there := actionsAt(t, s, p.replica, w); there < usage.ActionCount {
				t.Fatalf("%d actions are acknowledged, the replica has %d", usage.ActionCount, there)
			}
		}
		outcomes := must(s.ChargeBatch(t.Context(), token, []BatchCharge{{w.session.ID, Charge{Count: 1}}}, nil))(t)
		if there := actionsAt(t, s, p.replica, w); outcomes[0].Err != nil || there != 51 {
			t.Errorf("after a batch the replica has %d, want 51: %v", there, outcomes[0].Err)
		}
	})
}

func TestEveryWriteThatNoReplicaConfirmsIsInDoubtAndReadsGoOn(t *testing.T) {
	t.Parallel()
	onEachPair(t, func(t *testing.T, p *pair, crowd func(*testing.T, *Store)) {
		s := p.store(t, Replicated)
		operations, _ := newOperations(t, s)
		loadScripts(t, s) // or each would wait twice
		crowd(t, s)
		resume := p.suspendReplica(t)
		defer resume()
		var group sync.WaitGroup
		for _, operation := range operations {
			group.Go(func() {
				began := time.Now()
				err := operation.do(t.Context(), s)
				took := time.Since(began)
				switch {
				case operation.script.access != writes:
					if err != nil {
						t.Errorf("%s: %v", operation.name, err)
					}
				case changesFirst(operation):
					wantError(t, operation.name, err, ErrOutcomeUnknown)
				default: // what comes before the change is in doubt, and shows to nobody
					wantError(t, operation.name, err, ErrUnavailable)
				}
				if took > 2*callTimeout {
					t.Errorf("%s took %v", operation.name, took)
				}
			})
		}
		waitAtMost(t, 30*time.Second, &group)
		if _, err := s.KeepIssuer(t.Context(), "https://a.example"); !errors.Is(err, errUnconfirmed) {
			t.Errorf("KeepIssuer, the first: %v", err)
		}
		if _, err := s.KeepIssuer(t.Context(), "https://b.example"); err != nil {
			t.Errorf("KeepIssuer, the next: %v", err)
		}
		wantError(t, "SetIssuer", s.SetIssuer(t.Context(), "https://c.example"), ErrUnavailable)
	})
}

// changesFirst says whether an operation's first write is its change: others note in an index what they are about to
// create, or claim a key.
func changesFirst(o operation) bool {
	for _, prepared := range []string{"CreateAgent", "CreateSession", "Begin", "Charge once, its claim", "ChargeBatch once"} {
		if strings.HasPrefix(o.name, prepared) {
			return false
		}
	}
	return true
}

func TestAnUnconfirmedWriteIsThereAndItsRepetitionIsConfirmedLater(t *testing.T) {
	t.Parallel()
	onEachPair(t, func(t *testing.T, p *pair, crowd func(*testing.T, *Store)) {
		s := p.store(t, Replicated)
		w := newTenant(t, s, NewSession{MaxActions: 2, MaxValue: money.USD})
		grant := w.exchange(t, s)
		crowd(t, s)
		resume := p.suspendReplica(t)
		charge := func(once *Idempotency) error {
			_, err := s.Charge(t.Context(), byToken(grant), w.session.ID, Charge{Count: 1, Idempotency: once})
			return err
		}
		once := &Idempotency{Key: "key", Fingerprint: [32]byte{1}}
		wantError(t, "the first time", charge(once), ErrOutcomeUnknown)
		wantError(t, "again", charge(once.again()), ErrOutcomeUnknown)
		wantError(t, "without a key", charge(nil), ErrOutcomeUnknown)
		if there := actionsAt(t, s, p.primary, w); there != 2 {
			t.Errorf("the primary counts %d actions, want 2", there)
		}
		var limit *LimitError
		if err := charge(nil); !errors.As(err, &limit) {
			t.Errorf("beyond the limit: %v: a refusal acknowledges nothing", err)
		}
		_, err := s.RevokeAgent(t.Context(), w.key, w.agent.ID)
		wantError(t, "revoking", err, ErrOutcomeUnknown)
		_, err = s.RevokeAgent(t.Context(), w.key, w.agent.ID)
		wantError(t, "revoking again, which writes nothing", err, ErrOutcomeUnknown)
		resume()
		eventually(t, "it is confirmed", func() bool {
			_, err := s.RevokeAgent(t.Context(), w.key, w.agent.ID)
			return err == nil
		})
		if there := actionsAt(t, s, p.replica, w); there != 2 {
			t.Errorf("the replica counts %d actions, want 2", there)
		}
	})
}

func TestAWriteWaitsForItsReplicaNoLongerThanItsCallerDoes(t *testing.T) {
	t.Parallel()
	onEachPair(t, func(t *testing.T, p *pair, crowd func(*testing.T, *Store)) {
		s := p.store(t, Replicated)
		w := newTenant(t, s, NewSession{MaxActions: 2})
		token := byToken(w.exchange(t, s))
		loadScripts(t, s)
		crowd(t, s)
		p.suspendReplica(t)
		ctx, cancel := context.WithTimeout(t.Context(), confirmTime/2)
		defer cancel()
		_, err := s.Charge(ctx, token, w.session.ID, Charge{Count: 1})
		wantError(t, "Charge", err, ErrOutcomeUnknown)
		if errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errUnconfirmed) {
			t.Errorf("%v: Redis was not asked to answer before the deadline", err)
		}
	})
}

func TestACrowdIsConfirmedTogetherAndInDoubtTogether(t *testing.T) {
	t.Parallel()
	for name, cluster := range map[string]bool{"redis": false, "cluster": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startPair(t, cluster)
			s := p.store(t, Replicated)
			w := newTenant(t, s, NewSession{MaxActions: 10_000})
			token := byToken(w.exchange(t, s))
			const callers = 100
			all := func() []error {
				errs := make([]error, callers)
				var group sync.WaitGroup
				for i := range errs {
					group.Go(func() { _, errs[i] = s.Charge(context.Background(), token, w.session.ID, Charge{Count: 1}) })
				}
				waitAtMost(t, 30*time.Second, &group)
				return errs
			}
			for _, err := range all() {
				if err != nil {
					t.Fatal(err)
				}
			}
			p.suspendReplica(t)
			unknown := 0
			for _, err := range all() {
				if errors.Is(err, ErrOutcomeUnknown) {
					unknown++
				} else if !errors.Is(err, ErrUnavailable) { // its turn may not have come in time
					t.Errorf("%v", err)
				}
			}
			if there := actionsAt(t, s, p.primary, w); unknown == 0 || there != int64(callers+unknown) {
				t.Errorf("the primary counts %d actions, want %d and the %d in doubt", there, callers, unknown)
			}
		})
	}
}

// The reason for it all: the replica was cut off, and is made the primary.
func TestOnlyWhatAReplicaHasConfirmedOutlivesThePrimary(t *testing.T) {
	t.Parallel()
	for durability, loses := range map[Durability]bool{Local: true, Replicated: false} {
		t.Run(string(durability), func(t *testing.T) {
			t.Parallel()
			p := startPair(t, false)
			s := p.store(t, durability)
			w := newTenant(t, s, NewSession{MaxActions: 1_000_000})
			token := byToken(w.exchange(t, s))
			eventually(t, "the replica has the session", func() bool {
				return plainClient(t, "redis://"+p.replica).Exists(t.Context(), s.keys.session(w.agent.ID, w.session.ID)).Val() == 1
			})
			var acknowledged, doubt atomic.Int64
			var group sync.WaitGroup
			stop := make(chan struct{})
			for range 20 {
				group.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						if _, err := s.Charge(context.Background(), token, w.session.ID, Charge{Count: 1}); err == nil {
							acknowledged.Add(1)
						} else {
							doubt.Add(1)
						}
					}
				})
			}
			eventually(t, "charges are acknowledged", func() bool { return acknowledged.Load() > 200 })
			p.link.goDown()
			before := acknowledged.Load()
			eventually(t, "charges came after", func() bool { return acknowledged.Load() > before+200 || doubt.Load() > 20 })
			close(stop)
			waitAtMost(t, 30*time.Second, &group)
			promoted := plainClient(t, "redis://"+p.replica)
			must(promoted.Do(t.Context(), "REPLICAOF", "NO", "ONE").Result())(t)
			there := actionsAt(t, s, p.replica, w)
			t.Logf("acknowledged %d, in doubt %d, on the new primary %d", acknowledged.Load(), doubt.Load(), there)
			if lost := acknowledged.Load() > there; lost != loses {
				t.Errorf("%d were acknowledged and %d are there; lost: %v, want %v", acknowledged.Load(), there, lost, loses)
			}
		})
	}
}

func TestConfirmedChargesFollowASlotThatMoves(t *testing.T) {
	t.Parallel()
	aloneAndShared(t, func(t *testing.T, crowd func(*testing.T, *Store)) {
		skipIfShort(t)
		c := must(redisproc.StartClusterWithReplicas(t.Context(), 2, t.TempDir()))(t)
		t.Cleanup(func() { _ = c.Stop() })
		s := openStore(t, Config{Durability: Replicated}, c.URL(), nil)
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: money.USD})
		token := byToken(w.exchange(t, s))
		unaware := must(Open(s.config))(t)
		defer unaware.Close()
		move := newMove(t, s, w, c.Addrs()[:2])
		var charged int64
		wantCharged := move.charging(t, token, w.session.ID, &charged)
		wantCharged("before", s, "")
		wantCharged("before, by the unaware", unaware, "")
		crowdConfirmed(t, s, crowd)
		crowdConfirmed(t, unaware, crowd)

		move.begin(t)
		wantCharged("with no key moved", s, "")
		move.rest(t)
		wantCharged("with all keys moved", s, "ASK")
		move.end(t)
		wantCharged("after", s, "")
		wantCharged("after, by the unaware", unaware, "MOVED")
		wantAnotherMark(t, s)
	})
}

// wantAnotherMark checks what comes of a mark whose slot has gone to another server.
func wantAnotherMark(t *testing.T, s *Store) {
	t.Helper()
	server := must(s.serverOf(t.Context(), s.keys.issuer()))(t)
	var elsewhere string
	for cell := uint16(0); elsewhere == ""; cell++ {
		key := s.keys.mark(s.keys.ready(cell))
		if must(s.serverOf(t.Context(), key))(t) != server {
			elsewhere = key
		}
	}
	s.confirmerOf(server).mark.Store(&elsewhere)
	err := s.SetIssuer(t.Context(), "https://a.example")
	if !errors.Is(err, errUnconfirmed) {
		t.Errorf("with a mark elsewhere: %v", err)
	}
	wantError(t, "with another", s.SetIssuer(t.Context(), "https://b.example"), nil)
}

func TestReadyWarnsWhenNoReplicaCanConfirm(t *testing.T) {
	t.Parallel()
	for name, cluster := range map[string]bool{"redis": false, "cluster": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startPair(t, cluster)
			warned := func(d Durability) bool {
				warnings := must(p.store(t, d).Ready(t.Context()))(t)
				return slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, "no replica") })
			}
			if warned(Replicated) {
				t.Error("it warns while a replica follows")
			}
			_ = syscall.Kill(p.replicaPID, syscall.SIGKILL)
			eventually(t, "it warns", func() bool { return warned(Replicated) })
			if warned(Local) {
				t.Error("it warns though no replica is asked")
			}
		})
	}
}

// From Redis 7.2 on a WAIT waits for nothing if its connection has written nothing.
func TestBeforeEveryWaitTheConnectionWrites(t *testing.T) {
	t.Parallel()
	p := startPair(t, false)
	s := p.store(t, Replicated)
	w := newTenant(t, s, NewSession{MaxActions: 1})
	must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
	primary := plainClient(t, p.url)
	before := commandCounts(t, primary)
	must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
	run := commandsRun(t, primary, before)
	if run["eval"] != 1 || run["wait"] != 1 || run["hset"] != 1 {
		t.Errorf("revoking again ran %v, want a mark's hset and a wait", run)
	}
}

func TestAMarkIsInTheSlotOfItsKey(t *testing.T) {
	t.Parallel()
	k := keyspace{"remit:"}
	for key, want := range map[string]string{
		"remit:s:{c3f1}:0198": "remit:w:{c3f1}",
		"remit:k:issuer":      "remit:w:{remit:k:issuer}",
	} {
		if got := k.mark(key); got != want {
			t.Errorf("mark of %s is %s, want %s", key, got, want)
		}
	}
	cluster := plainClient(t, "redis://"+startCluster(t, 1)[0])
	for _, key := range []string{"remit:s:{c3f1}:0198", "remit:k:issuer"} {
		if slots := slotsOf(t, cluster, []string{key, k.mark(key)}); slots[0] != slots[1] {
			t.Errorf("%s is in slot %d, its mark in %d", key, slots[0], slots[1])
		}
	}
}

func TestWhenMemoryIsFullARevocationIsConfirmedAllTheSame(t *testing.T) {
	t.Parallel()
	p := startPair(t, false)
	s := p.store(t, Replicated)
	w := newTenant(t, s, NewSession{MaxActions: 1})
	must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
	if err := plainClient(t, p.url).ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RevokeAgent(t.Context(), w.key, w.agent.ID); err != nil {
		t.Errorf("revoking again, which writes nothing: %v", err)
	}
	mark := *s.confirmerOf(s.client.Redis().(*redis.Client)).mark.Load()
	must(plainClient(t, p.url).Del(t.Context(), mark).Result())(t) // as for an instance that has none yet
	if _, err := s.RevokeAgent(t.Context(), w.key, w.agent.ID); err != nil {
		t.Errorf("revoking without a mark: %v", err)
	}
}

// On a cluster whose slot moves, the answer of the node that is asked is lost.
func TestAConfirmedWriteThatIsAskedElsewhereRunsOnceThoughItsAnswerIsLost(t *testing.T) {
	t.Parallel()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	address := listener.Addr().String()
	var ran atomic.Int64
	go func() {
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			go beAskedAndSilent(conn, address, &ran)
		}
	}()
	s := openStore(t, Config{Durability: Replicated}, "redis+cluster://"+address, nil)
	own := s.client.Redis()
	s.client.Redis() = redis.NewClusterClient(&redis.ClusterOptions{
		Protocol: 2, MaxRetries: -1, DisableIdentity: true, DisableRoutingPolicies: true,
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: address}}}}, nil
		},
	})
	t.Cleanup(func() {
		_ = s.client.Redis().Close()
		s.client.Redis() = own
	})
	_, err := s.client.Run(t.Context(), flow{}, revokeAgent, []string{"a:{c}", "e:{c}"}, "x")
	wantError(t, "the write", err, ErrOutcomeUnknown)
	if n := ran.Load(); n != 1 {
		t.Errorf("it ran %d times", n)
	}
}

// beAskedAndSilent is a node that sends every script to itself by ASK, runs it when it is asked, and then ends the connection
// without an answer.
func beAskedAndSilent(conn net.Conn, address string, ran *atomic.Int64) {
	defer conn.Close()
	_, port, _ := net.SplitHostPort(address)
	answers := map[string]string{
		"hello": "-ERR unknown command\r\n", "evalsha": "-ASK 0 :" + port + "\r\n", "eval": "+OK\r\n", "wait": ":1\r\n",
	}
	asked := false
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		word := strings.ToLower(lines.Text())
		switch {
		case word == "asking":
			asked = true
		case asked && word == "evalsha":
			ran.Add(1)
		case asked && word == "wait":
			return
		case !asked:
			_, _ = io.WriteString(conn, answers[word])
		}
	}
}

func TestTheCauseOfAnUnconfirmedWriteDoesNotTellThatItNeverRan(t *testing.T) {
	t.Parallel()
	c := &confirmer{suspect: func(error) {}}
	for _, cause := range []error{errLaneLate, serverError("READONLY You can't write"), &net.OpError{Op: "dial", Err: errors.New("refused")}} {
		err := classify(c.failed(cause), writes)
		if !errors.Is(err, ErrOutcomeUnknown) || !strings.Contains(fmt.Sprint(err), cause.Error()) {
			t.Errorf("%v: %v", cause, err)
		}
	}
}
