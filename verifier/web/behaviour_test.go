package web

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/countersign-otel/countersign/ledger"
)

func (b *tab) click(selector string) {
	b.t.Helper()
	b.run(chromedp.Click(chromedp.CSS(selector)))
}

func (b *tab) typed(selector, text string) {
	b.t.Helper()
	b.run(chromedp.SendKeys(chromedp.CSS(selector), text))
}

func (b *tab) reads(selector string) string {
	b.t.Helper()
	return value[string](b, `document.querySelector(`+quote(selector)+`).innerText`)
}

func signInInBrowser(t *testing.T, browser context.Context) {
	f := newFixture(t)
	f.showcase(5)
	b := newTab(t, browser, f)
	b.open("/actions?verdict=FAIL") // a link that somebody shared
	b.until(`location.pathname === '/sign-in'`)
	b.typed("#key", "cs_viewer_wrong\r")
	b.until(`document.querySelector('.problem')?.innerText.includes('No such key')`)
	b.typed("#key", f.secrets[ledger.RoleViewer]+"\r")
	b.until(`location.pathname + location.search === '/actions?verdict=FAIL' && document.querySelector('.rows') !== null`)
	if got := value[string](b, `document.cookie`); got != "" {
		t.Errorf("a script can read the cookies %q", got)
	}
	b.click(".who button")
	b.until(`location.pathname === '/sign-in'`)
	b.open("/")
	b.until(`location.pathname === '/sign-in'`)
}

// What settles appears by itself, on the same page, wherever it is shown.
func liveInBrowser(t *testing.T, browser context.Context) {
	f := newFixture(t).library()
	f.live()
	f.at(start + 10)
	f.record(acme, refund("act_live", "order_1", start, "10"))
	f.verify(start+10, "act_live")
	overview, list, one := newTab(t, browser, f), newTab(t, browser, f), newTab(t, browser, f)
	for b, path := range map[*tab]string{overview: "/", list: "/actions", one: actionOf("act_live")} {
		b.signIn(f.secrets[ledger.RoleViewer])
		b.open(path)
		b.until(`document.querySelector('.live').dataset.state === 'on'`)
		b.run(chromedp.Evaluate[chromedp.Void](`window.untouched = true; document.getElementById('contract-words')?.removeAttribute('open')`))
	}
	f.ingest(acme, ledger.FactBatch{Facts: refundFacts("order_1", start, "10")})
	f.record(acme, refund("act_next", "order_2", start+20, "10"))
	f.verify(start+60, "act_live", "act_next")
	overview.until(`document.querySelector('.figure').innerText === '100.0 %'`)
	list.until(`document.querySelectorAll('.row').length === 2 && document.querySelector('.row.pass') !== null`)
	list.until(`document.querySelector('.row.fresh') !== null`)
	one.until(`document.querySelector('h1').innerText.toLowerCase().startsWith('all 4 expected effects observed')`)
	for name, b := range map[string]*tab{"overview": overview, "list": list, "action": one} {
		if !value[bool](b, `window.untouched === true`) {
			t.Errorf("%s was loaded again", name)
		}
		if got := b.reads("#announcement"); !strings.Contains(got, "brought up to date") {
			t.Errorf("%s tells a screen reader %q", name, got)
		}
	}
	if value[bool](one, `document.getElementById('contract-words').open`) {
		t.Error("what the reader had closed is open again")
	}
}

func findInBrowser(t *testing.T, browser context.Context) {
	f := newFixture(t)
	f.showcase(60)
	b := newTab(t, browser, f)
	b.signIn(f.secrets[ledger.RoleViewer])

	b.open("/actions")
	b.run(chromedp.SetValue(chromedp.CSS(`select[name="verdict"]`), "FAIL"))
	b.click(".filters button")
	b.until(`location.search.includes('verdict=FAIL') && document.querySelector('.rows') !== null`)
	if other := value[int](b, `document.querySelectorAll('.row:not(.fail):not(.pending)').length`); other != 0 {
		t.Errorf("%d rows that did not fail", other)
	}
	b.click("summary")
	b.typed(`input[name="agent_id"]`, "treasury-agent\r")
	b.until(`document.querySelectorAll('.row').length === 1 && location.search.includes('agent_id=treasury-agent')`)
	b.click(`a[aria-label="Remove the filter Verdict FAIL"]`)
	b.until(`!location.search.includes('verdict') && location.search.includes('agent_id=treasury-agent')`)

	b.typed(`input[name="q"]`, "order_10231\r")
	b.until(`location.search === '?subject_id=order_10231'`)
	b.click(".row-link")
	b.until(`document.querySelector('h1')?.innerText.startsWith('Shopify order remained active')`)
	hash := value[string](b, `document.querySelectorAll('.seals .hash')[1].innerText`)
	b.open("/")
	b.typed(`input[name="q"]`, hash+"\r")
	b.until(`location.hash === '#verify' && location.pathname === '` + actionOf("act_demo_refund_001") + `'`)
	b.typed(`input[name="q"]`, "nobody\r")
	b.until(`document.querySelector('.problem')?.innerText.includes('Nothing is recorded under nobody')`)

	b.open("/actions")
	first := b.reads(".rows")
	b.click(`a[rel="next"]`)
	b.until(`location.search.includes('cursor=') && document.querySelector('a[rel="prev"]') !== null`)
	b.click(`a[rel="prev"]`)
	b.until(`!location.search.includes('cursor=') && document.querySelector('a[rel="next"]') !== null`)
	if again := b.reads(".rows"); again != first {
		t.Errorf("the first page reads differently after going on and back:\n%s\n%s", first, again)
	}
}

// hostileInBrowser opens every page over hostile text: no script of it runs,
// nothing of it loads, no dialog opens, and the policy had nothing to stop.
func hostileInBrowser(t *testing.T, browser context.Context) {
	f := hostileStore(t)
	b := newTab(t, browser, f)
	b.signIn(f.secrets[ledger.RoleViewer])
	troubles := watch(b)
	dialogs := make(chan string, 100)
	err := chromedp.Listen(b.ctx, func(event any) {
		if dialog, ok := event.(*page.EventJavascriptDialogOpening); ok {
			dialogs <- dialog.Message
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range hostilePages() {
		b.open(path)
		if title := value[string](b, `document.title`); !strings.HasSuffix(title, " · Countersign") {
			t.Errorf("%s has the title %q", path, title)
		}
		if n := value[int](b, `document.querySelectorAll('img, iframe, script:not([src^="/assets/"]), [onload], [onerror], main script').length`); n != 0 {
			t.Errorf("%s has %d elements that no template has", path, n)
		}
		b.fits(path, 1280)
	}
	if shown := value[string](b, `document.title`); shown == "taken" {
		t.Error("the page was taken over")
	}
	select {
	case message := <-dialogs:
		t.Errorf("a dialog opened: %s", message)
	default:
	}
	for _, trouble := range troubles() {
		if strings.Contains(trouble, ": 40") || strings.Contains(trouble, "status of 40") {
			continue // some of the addresses name nothing
		}
		t.Error(trouble)
	}
}

// withoutScript reads the page in a browser that runs none.
func withoutScript(t *testing.T, browser context.Context) {
	f := newFixture(t)
	f.showcase(20)
	b := newTab(t, browser, f)
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.signIn(f.secrets[ledger.RoleViewer])
	for path, want := range map[string]string{
		"/": "Verified completion", "/actions": "act_demo_refund_006", actionOf("act_demo_refund_001"): "expected, not seen",
		"/contracts/refund_workflow": "What decides", "/sources": "shopify", "/orphans": "order_99001", "/actions?q=order_10231": "act_demo_refund_001",
	} {
		b.open(path)
		text, err := chromedp.Run(b.ctx, chromedp.OuterHTML(chromedp.CSS("main")))
		if err != nil {
			t.Fatal(err)
		}
		wantIn(t, path, text, want)
	}
}

func keyboardInBrowser(t *testing.T, browser context.Context) {
	f := newFixture(t)
	f.showcase(5)
	b := newTab(t, browser, f)
	b.signIn(f.secrets[ledger.RoleViewer])
	b.open(actionOf("act_demo_refund_001"))
	b.run(chromedp.KeyEvent(kb.Tab))
	if got := value[string](b, `document.activeElement.innerText`); got != "Skip to the content" {
		t.Errorf("the first stop of the keyboard is %q", got)
	}
	b.run(chromedp.KeyEvent(kb.Enter))
	b.until(`document.activeElement.id === 'content'`)
	b.run(chromedp.KeyEvent("/"))
	b.until(`document.activeElement.name === 'q'`)

	// Everything that can be pressed has a name, and every picture says what it is.
	unnamed := value[[]string](b, `[...document.querySelectorAll('a, button, input:not([type=hidden]), select, summary, svg[role=img], [role=region]')]
		.filter(e => !((e.getAttribute('aria-label') || e.labels?.[0]?.innerText || e.innerText || e.querySelector('title')?.textContent || document.getElementById(e.getAttribute('aria-labelledby'))?.textContent || '').trim()))
		.map(e => e.outerHTML.slice(0, 120))`)
	if len(unnamed) > 0 {
		t.Errorf("without a name: %q", unnamed)
	}
	if n := value[int](b, `document.querySelectorAll('h1').length`); n != 1 {
		t.Errorf("%d first headings", n)
	}

	call(b, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Tokyo"})
	b.open(actionOf("act_demo_refund_001"))
	requested := f.now() - 3000
	local := (requested + 9*3600).Time().Format("2006-01-02 15:04:05")
	if got := value[string](b, `document.querySelector('.sentence time').title`); got != local+" Asia/Tokyo" {
		t.Errorf("the local time at hand is %q, want %q", got, local)
	}
	if got := b.reads(".sentence"); !strings.Contains(got, clock(requested)+" UTC") {
		t.Errorf("the sentence says %q", got)
	}
	b.click(".zone button")
	b.until(`document.querySelector('.sentence time').innerText === ` + quote(local))
	b.open("/actions") // the choice stays
	b.until(`document.querySelector('.zone').innerText.includes('Show UTC')`)
}
