//! Objects in the heaps of the apps: `com.example.app` with its leaks, its service, other apps,
//! system_server. Owns the list of planted leaks.

use super::builder::NONE;
use super::framework::Skeleton;
use super::heap::{JavaHeap, Obj, RootKind, Space, Value};
use super::inputs::{Inputs, Role};
use super::pictures::{Picture, PictureFormat};
use super::screens::Screen;
use super::structures::{array_map, hash_map, list, list_capacity};
use super::truth::Plant;

/// Size in bytes of the history that each listener of the growing list holds.
pub(super) const LISTENER_HISTORY_BYTES: usize = 10_000;
/// Side of a thumbnail in pixels.
const THUMBNAIL: u32 = 128;
/// Number of thumbnails that show the same placeholder.
const PLACEHOLDERS: u32 = 4;
/// Width and height of the picture above a detail page.
const HEADER: (u32, u32) = (1_080, 480);
/// Width and height of the picture above a destroyed screen: its pixels are the allocation that the
/// native heap keeps for each of them.
const SCREEN_HEADER: (u32, u32) = (256, 192);
/// First picture of the destroyed screens, which differ from each other and from thumbnails.
const SCREEN_PICTURES: u32 = 1_000;
/// Number of articles of the feed, and how many share the address of their picture.
const ARTICLES: u32 = 200;
const PLACEHOLDER_URL: &str = "https://img.example.com/thumbnails/placeholder-256.webp";
/// Slots and entries of the oversized table.
const SPARSE_SLOTS: usize = 8_192;
const SPARSE_ENTRIES: u32 = 12;
/// Size in bytes of an array that only a soft reference holds.
const SPARE_BYTES: usize = 7_777;
/// Size in bytes of an array that a thread's variable holds.
const THREAD_LOCAL_BYTES: usize = 12_345;

/// Fills a heap; with pictures of its bitmaps if the dump has them.
pub(super) fn build(inputs: &Inputs, pictures: Option<PictureFormat>) -> (JavaHeap, Vec<Plant>) {
    let mut skeleton = Skeleton::new(inputs);
    let mut plants = Vec::new();
    match inputs.role {
        Role::Example => plants = example(&mut skeleton),
        Role::Service => service(&mut skeleton),
        Role::Other => other(&mut skeleton),
        Role::System => system_server(&mut skeleton),
    }
    background(&mut skeleton);
    if let Some(format) = pictures {
        skeleton.draw_bitmaps(format);
    }
    skeleton.complete();
    (skeleton.b.finish(), plants)
}

/// Adds the application object of `com.example.app` and its connection.
fn application(s: &mut Skeleton<'_>) -> (Obj, Obj) {
    let application = s.application("com.example.app.ExampleApplication");
    let (http, catalog) = (http(s), catalog(s));
    s.b.fill(application, "http catalog", &[http, catalog]);
    (application, http)
}

/// Fills the heap of `com.example.app`.
pub(super) fn example(s: &mut Skeleton<'_>) -> Vec<Plant> {
    let mut plants = Vec::new();
    let (application, http) = application(s);
    let feed = s.activity("com.example.app.ui.FeedActivity", application, true);
    let presenter = feed_screen(s, feed, http, &mut plants);
    plants.push(leaked_activity(s, application));
    plants.push(detached_fragment(s, presenter, http));
    let destroyed = destroyed_screens(s, application);
    plants.push(listeners(s, &destroyed));
    plants.push(detached_view(s, feed));
    plants.push(thumbnails(s, application));
    plants.push(sparse(s));
    plants.push(garbage(s));
    plants.push(dead_service(s, application));
    // Finalizers or phantom references clean up bitmaps and connections.
    let stream = s.b.object("java.io.FileInputStream", NONE);
    s.b.root(stream, RootKind::RootJniLocal, 1);
    s.finalizable(stream);
    if !destroyed.is_empty() {
        plants.push(Plant::new("recreated-activities", destroyed));
    }
    plants
}

/// Fills the heap of `com.example.app:service`.
pub(super) fn service(s: &mut Skeleton<'_>) {
    let (application, _) = application(s);
    let service = location_service(s, application);
    let token = s.b.object("android.os.BinderProxy", NONE);
    s.services.push((token, service));
}

/// Fills the heap of any other app.
pub(super) fn other(s: &mut Skeleton<'_>) {
    let application = s.application("android.app.Application");
    if s.inputs.has_activity {
        let screen = s.activity("android.app.Activity", application, true);
        let text = s.b.string(&s.inputs.process);
        let label = screen.view(s, "android.widget.TextView");
        s.b.fill(
            label,
            "mText mAttachInfo",
            &[Some(text), screen.attach_info],
        );
        s.children(screen.content, &[label]);
    }
}

/// Fills the heap of system_server.
pub(super) fn system_server(s: &mut Skeleton<'_>) {
    let context = s.context(s.activity_thread);
    let server =
        s.b.object("com.android.server.SystemServer mSystemContext", &[context]);
    s.b.set_static("com.android.server.SystemServer.instance", server);
    let neighbours = s.inputs.neighbours.iter();
    let entries: Vec<(Obj, Obj)> = neighbours
        .map(|(pid, uid, name)| {
            let text = s.b.string(name);
            let values = [text.into(), (*pid).into(), (*uid).into()];
            let class = "com.android.server.am.ProcessRecord";
            (
                text,
                s.b.instance::<Value>(class, "processName mPid uid", &values),
            )
        })
        .collect();
    let map = hash_map(&mut s.b, "java.util.HashMap", &entries, 64);
    let manager = s.b.object(
        "com.android.server.am.ActivityManagerService mContext mProcessNames",
        &[context, map],
    );
    s.b.root(manager, RootKind::RootJniGlobal, 0);
}

/// Adds objects that a leak analysis should ignore: those of the zygote, and the app's own data.
pub(super) fn background(s: &mut Skeleton<'_>) {
    let count = s.inputs.background;
    let tags = s.b.within(Space::BootImage, |b| {
        let tags = (0..count / 10).map(|n| Some(b.string(&format!("boot_resource_{n}"))));
        let tags = tags.collect();
        b.array("java.lang.String[]", tags)
    });
    s.b.set_static("sun.util.locale.BaseLocale.tags", tags);
    let strings = s.b.within(Space::Zygote, |b| {
        let strings = (0..count / 5).map(|n| Some(b.string(&format!("Preloaded text number {n}"))));
        let strings = strings.collect();
        b.array("java.lang.String[]", strings)
    });
    s.b.set_static("android.app.PreloadedText.strings", strings);
    let preloaded = s.b.within(Space::Zygote, |b| {
        let class = "android.graphics.drawable.ColorDrawable";
        let colours = (0..count / 20).map(|n| Some(b.instance(class, "mColor", &[n * 0x1234])));
        let colours: Vec<Option<Obj>> = colours.collect();
        let size = colours.len();
        let values = b.array("java.lang.Object[]", colours);
        let keys = b.ints(0..size as i32);
        let values = [keys.into(), values.into(), size.into()];
        b.instance::<Value>("android.util.SparseArray", "mKeys mValues mSize", &values)
    });
    let place = "android.content.res.ResourcesImpl.sPreloadedDrawables";
    s.b.set_static(place, preloaded);
}

/// Adds an index of products: a HashMap in proportion to the app's size.
fn catalog(s: &mut Skeleton<'_>) -> Obj {
    let count = s.inputs.background / 8;
    let entries: Vec<(Obj, Obj)> = (0..count)
        .map(|n| {
            let key = s.b.string(&format!("product-{n:06}"));
            let name = s.b.string(&format!("Product {n} of the catalogue"));
            let product = s.b.object::<Value>(
                "com.example.app.feed.Product id name price",
                &[i64::from(n).into(), name.into(), (n % 997 * 10 + 99).into()],
            );
            (key, product)
        })
        .collect();
    let capacity = (entries.len() * 4 / 3 + 1).next_power_of_two();
    let map = hash_map(&mut s.b, "java.util.HashMap", &entries, capacity);
    s.b.object("com.example.app.feed.Catalog products", &[map])
}

fn http(s: &mut Skeleton<'_>) -> Obj {
    let local = s.b.object("java.lang.ThreadLocal", NONE);
    let buffer = s.b.bytes(vec![0x5a; THREAD_LOCAL_BYTES]);
    let worker = s.thread("OkHttp Dispatcher", false);
    let number = s.newest_thread();
    s.thread_locals(worker, &[(local, buffer)]);
    let headers = list(&mut s.b, &[], 0);
    let http = s.b.object(
        "com.example.app.net.Http buffers headers",
        &[local, headers],
    );
    // The worker holds its connection in a local variable.
    let watcher = s.b.object("java.lang.ref.WeakReference referent", &[http]);
    let connection = s.b.object(
        "com.example.app.net.Connection owner watcher",
        &[http, watcher],
    );
    s.b.root(connection, RootKind::RootJavaFrame, number);
    http
}

/// Adds the feed: rows on the screen and the articles of these rows. Returns the presenter.
fn feed_screen(s: &mut Skeleton<'_>, feed: Screen, http: Obj, plants: &mut Vec<Plant>) -> Obj {
    let presenter =
        s.b.object("com.example.app.feed.FeedPresenter http", &[http]);
    let mut images = Vec::new();
    let articles: Vec<Obj> = (0..ARTICLES)
        .map(|n| {
            let title = s.b.string(&format!("Article {n}: what happened today"));
            // Each string is parsed from the network: equal, but not identical.
            let image = s.b.string(PLACEHOLDER_URL);
            images.push(image);
            let score = s.b.object("java.lang.Integer value", &[1_000 + n]);
            s.b.object(
                "com.example.app.feed.Article id image score title",
                &[
                    (i64::from(n) + 70_000).into(),
                    image.into(),
                    score.into(),
                    Value::from(title),
                ],
            )
        })
        .collect();
    plants.push(Plant::new("duplicate-strings", images));
    let articles = list(&mut s.b, &articles, 254);
    let adapter = s.b.object(
        "com.example.app.feed.FeedAdapter articles presenter",
        &[articles, presenter],
    );
    s.b.fill(feed.activity, "adapter presenter", &[adapter, presenter]);
    let view = feed.view(s, "com.example.app.ui.FeedView");
    s.b.fill(
        view,
        "mAttachInfo mWindowAttachCount=1",
        &[feed.attach_info],
    );
    let rows: Vec<Obj> = (0..8)
        .map(|n| {
            let row = label(s, &feed, view, &format!("Article {n}: what happened today"));
            let holder = s.b.object("com.example.app.feed.RowHolder row", &[row]);
            s.b.fill(row, "mAttachInfo mTag", &[feed.attach_info, Some(holder)]);
            row
        })
        .collect();
    s.children(view, &rows);
    s.children(feed.content, &[view]);
    presenter
}

/// Adds a view with a text to a view of a screen.
fn label(s: &mut Skeleton<'_>, screen: &Screen, parent: Obj, text: &str) -> Obj {
    let label = s.view("android.widget.TextView", screen.activity, Some(parent));
    let text = s.b.string(text);
    s.b.set(label, "mText", text);
    label
}

/// Adds the picture above a destroyed screen; returns its view.
fn header(
    s: &mut Skeleton<'_>,
    screen: &Screen,
    (width, height): (u32, u32),
    picture: Picture,
) -> Obj {
    let picture = s.bitmap(width, height, picture);
    let state = s.b.object(
        "android.graphics.drawable.BitmapDrawable$BitmapState mBitmap",
        &[picture.object],
    );
    let drawable = s.b.object(
        "android.graphics.drawable.BitmapDrawable mBitmapState",
        &[state],
    );
    let header = screen.view(s, "android.widget.ImageView");
    s.b.fill(header, "mDrawable mWindowAttachCount=1", &[drawable]);
    header
}

/// Adds a destroyed activity that a static field still holds, with a large bitmap.
fn leaked_activity(s: &mut Skeleton<'_>, application: Obj) -> Plant {
    let screen = s.activity("com.example.app.ui.DetailActivity", application, false);
    let header = header(s, &screen, HEADER, Picture(1));
    s.children(screen.content, &[header]);
    let navigator = s.b.object("com.example.app.ui.Navigator depth=1", NONE);
    s.b.set_static("com.example.app.ui.Navigator.INSTANCE", navigator);
    s.b.set_static("com.example.app.ui.Navigator.previous", screen.activity);
    s.b.fill(screen.activity, "header navigator", &[header, navigator]);
    // A correct observer holds it weakly.
    let weak =
        s.b.object("java.lang.ref.WeakReference referent", &[screen.activity]);
    s.b.root(weak, RootKind::RootJniGlobal, 0);
    Plant::new("destroyed-activity", vec![screen.activity])
}

/// Adds a removed fragment that a message on the main queue still holds.
fn detached_fragment(s: &mut Skeleton<'_>, presenter: Obj, http: Obj) -> Plant {
    let tag = s.b.string("settings");
    let fragment = s.b.object(
        "com.example.app.ui.SettingsFragment http mTag mCalled=true",
        &[http, tag],
    );
    let refresh = s.b.object(
        "com.example.app.feed.FeedPresenter$Refresh fragment this$0",
        &[fragment, presenter],
    );
    let handler = s.handler("android.os.Handler");
    s.post(handler, refresh, 12_345_678);
    Plant::new("removed-fragment", vec![fragment])
}

/// Adds the screens destroyed since the process began, by rotation or BACK. Each one has joined the
/// list of listeners and never leaves it.
fn destroyed_screens(s: &mut Skeleton<'_>, application: Obj) -> Vec<Obj> {
    (0..s.inputs.life.destroyed)
        .map(|n| {
            let screen = s.activity("com.example.app.ui.FeedActivity", application, false);
            let view = screen.view(s, "com.example.app.ui.FeedView");
            s.b.set(view, "mWindowAttachCount", 1);
            let text = |row| format!("Article {row}, as screen {n:04} showed it");
            let rows = (0..8).map(|row| label(s, &screen, view, &text(row)));
            let rows: Vec<Obj> = rows.collect();
            s.children(view, &rows);
            let header = header(s, &screen, SCREEN_HEADER, Picture(SCREEN_PICTURES + n));
            s.children(screen.content, &[header, view]);
            screen.activity
        })
        .collect()
}

/// Adds listeners that are never unregistered, including screens.
fn listeners(s: &mut Skeleton<'_>, screens: &[Obj]) -> Plant {
    let count = s.inputs.life.listeners;
    let all: Vec<Obj> = (0..count)
        .map(|n| {
            let history = s.b.bytes(vec![n as u8; LISTENER_HISTORY_BYTES]);
            let screen = s.b.string(&format!("screen-{n:04}"));
            s.b.object(
                "com.example.app.telemetry.ScreenListener history screen since",
                &[history.into(), screen.into(), Value::from(n)],
            )
        })
        .collect();
    let entries: Vec<Obj> = all.iter().chain(screens).copied().collect();
    let list = list(&mut s.b, &entries, list_capacity(entries.len()));
    let telemetry = s.b.object(
        "com.example.app.telemetry.Telemetry listeners nativeHandle=0x7a0050000000",
        &[list],
    );
    s.b.set_static("com.example.app.telemetry.Telemetry.INSTANCE", telemetry);
    Plant::new("listener-list", all).with_holder(list)
}

/// Adds a dismissed dialog that a static field still holds, with its views.
fn detached_view(s: &mut Skeleton<'_>, feed: Screen) -> Plant {
    let window = s.window(feed.activity);
    let label = s.view(
        "android.widget.TextView",
        feed.activity,
        Some(window.content),
    );
    s.b.set(label, "mWindowAttachCount", 1);
    s.children(window.content, &[label]);
    let sheet = s.b.object(
        "com.example.app.ui.ShareSheet mContext mDecor mWindow",
        &[feed.activity, window.decor, window.window],
    );
    s.b.set_static("com.example.app.ui.ShareSheet.last", sheet);
    // A row that is kept for reuse is not a leak.
    let row = s.view("com.example.app.ui.FeedView", feed.activity, None);
    s.b.set(row, "mWindowAttachCount", 1);
    let holder = s.b.object("com.example.app.feed.RowHolder row", &[row]);
    s.b.set_static("com.example.app.feed.RowHolder.recycled", holder);
    Plant::new("detached-view", vec![window.decor])
}

/// Adds the cache of bitmaps; some of them show the same picture.
fn thumbnails(s: &mut Skeleton<'_>, application: Obj) -> Plant {
    let count = s.inputs.life.thumbnails;
    let mut all = Vec::new();
    let entries: Vec<(Obj, Obj)> = (0..count)
        .map(|n| {
            let key = s.b.string(&format!("thumbnail-{n}"));
            let picture = if n < PLACEHOLDERS { 2 } else { n + 10 };
            let bitmap = s.bitmap(THUMBNAIL, THUMBNAIL, Picture(picture)).object;
            all.push(bitmap);
            (key, bitmap)
        })
        .collect();
    let map = hash_map(&mut s.b, "java.util.LinkedHashMap", &entries, 128);
    s.b.fill(map, "accessOrder=true", NONE);
    let lru = s.b.object(
        "android.util.LruCache map size maxSize=96 putCount",
        &[map.into(), count.into(), Value::from(count)],
    );
    let spare = s.b.bytes(vec![7; SPARE_BYTES]);
    let soft = s.b.object(
        "java.lang.ref.SoftReference referent timestamp=1000",
        &[spare],
    );
    let cache = s.b.object(
        "com.example.app.image.ThumbnailCache bitmaps spare",
        &[lru, soft],
    );
    s.b.set(application, "thumbnails", cache);
    Plant::new("bitmap-cache", all).with_holder(cache)
}

/// Adds a table with thousands of slots and a dozen entries.
fn sparse(s: &mut Skeleton<'_>) -> Plant {
    let entries: Vec<(Obj, Obj)> = (0..SPARSE_ENTRIES)
        .map(|n| {
            let key = s.b.string(&format!("counter-{n}"));
            (
                key,
                s.b.object("java.lang.Long value", &[i64::from(n) * 1_000]),
            )
        })
        .collect();
    let map = hash_map(&mut s.b, "java.util.HashMap", &entries, SPARSE_SLOTS);
    let counter = s.b.object("com.example.app.stats.Counter counts", &[map]);
    s.b.set_static("com.example.app.stats.Counter.INSTANCE", counter);
    Plant::new("sparse-map", vec![map])
}

/// Adds unreachable objects: builders with their text, and pairs that refer to each other.
fn garbage(s: &mut Skeleton<'_>) -> Plant {
    let mut all = Vec::new();
    for n in 0..s.inputs.life.garbage {
        let text = s.b.chars(&format!("a line that was logged, number {n:03}"));
        let builder = s.b.object("java.lang.StringBuilder value", &[text]);
        all.extend([text, builder]);
        if n % 5 == 0 {
            let a = s.b.object("com.example.app.feed.FeedPresenter", NONE);
            let class = "com.example.app.feed.FeedPresenter$Refresh";
            let b = s.b.instance(class, "this$0", &[a]);
            s.b.set(a, "pending", b);
            all.extend([a, b]);
        }
    }
    // A dropped bitmap with its pixels, whose cleaner has not run yet; a row that only a weak
    // reference refers to; and a stream that waits for its finalizer.
    if s.inputs.life.garbage > 0 {
        let dropped = s.bitmap(THUMBNAIL, THUMBNAIL, Picture(3)).object;
        let row = s.b.object("com.example.app.feed.RowHolder", NONE);
        let weak = s.b.object("java.lang.ref.WeakReference referent", &[row]);
        s.b.root(weak, RootKind::RootJniGlobal, 0);
        let stream = s.b.object("java.io.FileInputStream", NONE);
        s.finalizable(stream);
        all.extend([dropped, row, stream]);
    }
    Plant::new("garbage", all)
}

fn location_service(s: &mut Skeleton<'_>, application: Obj) -> Obj {
    let name = s.b.constant("com.example.app.location.LocationService");
    let service = s.b.object(
        "com.example.app.location.LocationService mApplication mClassName mThread listening=true",
        &[application, name, s.activity_thread],
    );
    let context = s.context(service);
    s.b.set(service, "mBase", context);
    service
}

/// Adds a stopped service that is still registered for locations.
fn dead_service(s: &mut Skeleton<'_>, application: Obj) -> Plant {
    let service = location_service(s, application);
    let listeners = list(&mut s.b, &[service], 10);
    let manager =
        s.b.object("android.location.LocationManager mListeners", &[listeners]);
    s.b.root(manager, RootKind::RootJniGlobal, 0);
    let empty = array_map(&mut s.b, &[]);
    s.b.set(s.loaded_apk, "mServices", empty);
    Plant::new("stopped-service", vec![service])
}
