package web

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/countersign-otel/countersign/ledger"
)

var pictures = flag.String("pictures", "", "folder to write pictures of the page to; none by default")

// chromium is a browser for the tests of one process.
func chromium(t *testing.T) context.Context {
	t.Helper()
	path := ""
	for _, name := range []string{os.Getenv("COUNTERSIGN_CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if name == "" {
			continue
		}
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Fatal("the tests of the page need Chromium: apt-get install chromium, or set COUNTERSIGN_CHROMIUM to the path of another build of it")
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
	}
	for _, name := range []string{"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "disable-extensions", "hide-scrollbars", "disable-dev-shm-usage"} {
		options = append(options, chromedp.Flag(name, true))
	}
	allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Error(err)
		}
		end()
		endAllocator()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// tab is one page of the browser, with a cookie jar of its own.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string
}

func newTab(t *testing.T, browser context.Context, f *fixture) *tab {
	t.Helper()
	ctx, end := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
	t.Cleanup(func() {
		cancel()
		end()
	})
	b := &tab{t, ctx, f.server.URL}
	b.size(1280, 860)
	return b
}

func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) size(width, height int64) {
	b.t.Helper()
	b.run(chromedp.EmulateViewport(width, height))
}

// scheme shows light or dark.
func (b *tab) scheme(name string) {
	b.t.Helper()
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
}

func (b *tab) open(path string) {
	b.t.Helper()
	b.run(chromedp.Navigate(b.base + path))
	b.until(`document.querySelector('main') !== null`)
}

func (b *tab) signIn(secret string) {
	b.t.Helper()
	b.open("/sign-in")
	b.run(chromedp.SendKeys(chromedp.CSS("#key"), secret), chromedp.Submit(chromedp.CSS("#key")))
	b.until(`document.querySelector('nav') !== null`)
}

// call sends one command of the browser's protocol.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	result, err := chromedp.Call(b.ctx, command, params)
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

// value evaluates an expression on the page.
func value[T any](b *tab, expression string) T {
	b.t.Helper()
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return found
}

// until waits for an expression to hold on a page that is there as a whole,
// also across pages, and says what the page shows when it does not.
func (b *tab) until(expression string) {
	b.t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		holds, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("document.readyState === 'complete' && !!("+expression+")"))
		if holds && err == nil {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("%s: %v\nthe page shows:\n%s", expression, err, value[string](b, `location + "\n" + document.body.innerText`))
		}
		<-ticker.C // an error: the page is on its way to another one
	}
}

// picture shows as much of the page as is high, when pictures are asked for.
func (b *tab) picture(name string, width, height int64) {
	b.t.Helper()
	if *pictures == "" || height == 0 {
		return
	}
	b.size(width, height)
	b.run(chromedp.Evaluate[chromedp.Void](`scrollTo(0, 0)`))
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.MkdirAll(*pictures, 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*pictures, name+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// TestBrowser shows the page in a real Chromium: one browser, one view after the other.
func TestBrowser(t *testing.T) {
	t.Parallel()
	browser := chromium(t)
	for _, one := range []struct {
		name string
		run  func(*testing.T, context.Context)
	}{
		{"Views", viewsInBrowser},
		{"RareViews", rareInBrowser},
		{"SignIn", signInInBrowser},
		{"Live", liveInBrowser},
		{"FilterAndSearch", findInBrowser},
		{"Hostile", hostileInBrowser},
		{"WithoutScript", withoutScript},
		{"KeyboardAndLocalTime", keyboardInBrowser},
	} {
		t.Run(one.name, func(t *testing.T) { one.run(t, browser) })
	}
}

// viewsInBrowser opens every view, light and dark, wide and narrow, and lets
// nothing on it fail: no error in the console, nothing that the policy stops,
// nothing from elsewhere.
func viewsInBrowser(t *testing.T, browser context.Context) {
	f := newFixture(t)
	f.showcase(240)
	b := newTab(t, browser, f)
	troubles := watch(b)
	b.scheme("light")
	b.open("/sign-in")
	b.picture("sign-in", 1280, 620)
	b.signIn(f.secrets[ledger.RoleViewer])
	for _, view := range []struct {
		name, path, shows string
		// high is how much of the view a picture shows; 0 for no picture.
		high int64
	}{
		{"overview", "/", "Verified completion", 1500},
		{"actions", "/actions", "act_demo_refund_006", 1000},
		{"action-fail", actionOf("act_demo_refund_001"), "Shopify order remained active", 1420},
		{"action-pass", actionOf("act_demo_refund_002"), "all 4 expected effects", 0},
		{"action-policy", actionOf("act_demo_refund_003"), "not eligible", 0},
		{"action-compensated", actionOf("act_demo_refund_004"), "COMPENSATED", 1200},
		{"action-pending", actionOf("act_demo_refund_006"), "window closes", 1080},
		{"action-waiting", actionOf("act_demo_refund_007"), "waiting for crm", 0},
		{"action-reversed", actionOf("act_payout_7"), "returned", 1200},
		{"contracts", "/contracts", "close_ticket", 620},
		{"contract", "/contracts/refund_workflow", "What decides", 1500},
		{"sources", "/sources", "stripe", 1000},
		{"orphans", "/orphans", "order_99001", 620},
	} {
		b.size(1280, 860)
		b.scheme("light")
		b.open(view.path)
		if text := value[string](b, `document.querySelector('main').innerText`); !strings.Contains(text, view.shows) {
			t.Errorf("%s does not show %q:\n%s", view.name, view.shows, text)
		}
		b.fits(view.name, 1280)
		b.readable(view.name + ", light")
		b.legible(view.name)
		b.picture(view.name, 1280, view.high)
		b.scheme("dark")
		b.readable(view.name + ", dark")
		if view.name == "overview" || view.name == "action-fail" {
			b.picture(view.name+"-dark", 1280, view.high)
		}
		b.size(390, 844)
		b.fits(view.name, 390)
		b.legible(view.name + ", narrow")
		b.readable(view.name + ", narrow")
		if view.name == "overview" || view.name == "action-fail" {
			b.picture(view.name+"-narrow", 390, 1500)
		}
	}
	for _, trouble := range troubles() {
		t.Error(trouble)
	}
}

// fits fails when the page itself scrolls sideways.
func (b *tab) fits(name string, width int) {
	b.t.Helper()
	if wide := value[int](b, `document.documentElement.scrollWidth`); wide > width {
		b.t.Errorf("%s is %d wide on a screen of %d", name, wide, width)
	}
}
