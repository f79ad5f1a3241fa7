//! Places that work, fail, hang and come back, all of them played; the real ones are in the window's tests.

use super::*;
use keyring_core::mock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

const SERVER: &str = "https://desk.example";

fn signed_in(token: &str) -> SignedIn {
    SignedIn { token: Secret::new(token), guide: "李娜".into(), keep: true }
}

/// A place in memory that can be told to fail.
#[derive(Clone)]
struct Played {
    store: Arc<CredentialStore>,
    locked: Arc<AtomicBool>,
}

impl Played {
    fn new() -> Self {
        Self { store: mock::Store::new().unwrap(), locked: Arc::default() }
    }

    fn lock(&self, locked: bool) {
        self.locked.store(locked, Ordering::SeqCst);
    }

    fn open(&self) -> impl Fn() -> keyring_core::Result<Arc<CredentialStore>> + Send + Sync + 'static {
        let played = self.clone();
        move || {
            if played.locked.load(Ordering::SeqCst) {
                return Err(Error::NoStorageAccess("it is locked".into()));
            }
            Ok(played.store.clone())
        }
    }

    /// The token that it holds for a server.
    fn holds(&self, server: &str) -> Option<String> {
        let bytes = self.store.build(SERVICE, server, None).unwrap().get_secret().ok()?;
        Some(serde_json::from_slice::<Stored>(&bytes).unwrap().session?.token.expose().to_owned())
    }

    fn is_empty(&self) -> bool {
        matches!(self.store.build(SERVICE, SERVER, None).unwrap().get_secret(), Err(Error::NoEntry))
    }
}

fn keyring(places: Places) -> Keyring {
    within(places, Duration::from_secs(20))
}

/// The clock stands still: what was kept later is known all the same.
fn within(places: Places, limit: Duration) -> Keyring {
    Keyring { limit, ..Keyring::new(places, SERVER.to_owned(), || 1_000) }
}

impl Look {
    fn found(self) -> Option<(Kept, String)> {
        match self {
            Self::Found(found) => Some((found.kept, found.signed_in.token.expose().to_owned())),
            Self::Nobody | Self::Blind => None,
        }
    }
}

/// Keeps what is logged.
#[derive(Clone, Default)]
struct Lines(Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What `work` logs.
async fn logged(work: impl Future<Output = ()>) -> String {
    use tracing::instrument::WithSubscriber;
    let lines = Lines::default();
    let writer = lines.clone();
    let log = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    work.with_subscriber(log).await;
    String::from_utf8_lossy(&lines.0.lock().unwrap()).into_owned()
}

#[tokio::test]
async fn a_session_is_found_again_until_it_is_forgotten_and_by_its_own_server_alone() {
    let place = Played::new();
    let places = Places::default().with(Kept::Keyring, place.open());
    assert!(keyring(places.clone()).find().await.found().is_none());
    let (kept, held) = keyring(places.clone()).keep(&signed_in("T")).await;
    assert_eq!(kept, Kept::Keyring);
    let Look::Found(found) = keyring(places.clone()).find().await else { panic!("it was kept") };
    assert_eq!((found.kept, found.signed_in.token.expose()), (Kept::Keyring, "T"));
    assert_eq!((found.signed_in.guide.as_str(), found.signed_in.keep), ("李娜", true));
    let another = Keyring::new(places.clone(), "http://desk.example".to_owned(), || 1_000);
    assert!(another.find().await.found().is_none(), "another server's token is nobody else's");
    another.forget(&held).await;
    assert!(keyring(places.clone()).find().await.found().is_some());
    keyring(places.clone()).forget(&held).await;
    assert!(keyring(places).find().await.found().is_none());
    assert!(place.is_empty());
}

#[tokio::test]
async fn the_next_place_takes_what_a_locked_one_does_not_and_gives_it_up_later() {
    let (service, kernel) = (Played::new(), Played::new());
    service.lock(true);
    let keyring = keyring(Places::default().with(Kept::Keyring, service.open()).with(Kept::UntilReboot, kernel.open()));
    assert_eq!(keyring.keep(&signed_in("old")).await.0, Kept::UntilReboot);
    assert_eq!(keyring.find().await.found().unwrap().0, Kept::UntilReboot);
    service.lock(false);
    assert_eq!(keyring.keep(&signed_in("new")).await.0, Kept::Keyring);
    assert_eq!(kernel.holds(SERVER), None, "an old session must not come to light again");
    service.lock(true);
    kernel.lock(true);
    assert_eq!(keyring.keep(&signed_in("newest")).await.0, Kept::Memory);
    assert!(matches!(keyring.find().await, Look::Blind), "there may be one");
}

#[tokio::test]
async fn a_locked_place_that_says_it_is_empty_is_known_by_what_it_does_not_take() {
    let played = Played::new();
    let calls = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let (open, counted) = (played.open(), calls.clone());
    let locked_for_writing = move || match counted.fetch_add(1, Ordering::SeqCst) {
        0 => open(),
        _ => Err(Error::NoStorageAccess("prompt dismissed".into())),
    };
    assert!(matches!(keyring(Places::default().with(Kept::Keyring, locked_for_writing)).find().await, Look::Blind));
    assert_eq!(calls.load(Ordering::SeqCst), 2);
    assert!(matches!(keyring(Places::default().with(Kept::Keyring, played.open())).find().await, Look::Nobody));
    assert!(played.is_empty(), "nothing of the trial stays");
}

#[tokio::test]
async fn the_newest_session_counts_wherever_it_is() {
    let (service, kernel) = (Played::new(), Played::new());
    let places = Places::default().with(Kept::Keyring, service.open()).with(Kept::UntilReboot, kernel.open());
    keyring(places.clone()).keep(&signed_in("first guide's")).await;
    service.lock(true);
    // The app looks at every start, and at this one it sees nothing.
    let second = keyring(places.clone());
    assert!(matches!(second.find().await, Look::Blind));
    let second = Keyring { now: || 2_000, ..second };
    assert_eq!(second.keep(&signed_in("second guide's")).await.0, Kept::UntilReboot);
    service.lock(false);
    let found = keyring(places.clone()).find().await.found();
    assert_eq!(found, Some((Kept::UntilReboot, "second guide's".to_owned())), "the newest one, not the better place's");
    assert!(service.is_empty(), "the older one is done with");
}

#[tokio::test]
async fn who_signed_out_while_the_place_was_locked_is_not_signed_in_by_its_unlocking() {
    let (service, kernel) = (Played::new(), Played::new());
    let places = Places::default().with(Kept::Keyring, service.open()).with(Kept::UntilReboot, kernel.open());
    let (_, held) = keyring(places.clone()).keep(&signed_in("T")).await;
    service.lock(true);
    let log = logged(keyring(places.clone()).forget(&held)).await;
    assert!(log.contains("cannot be taken out") && log.contains("it is noted"), "{log}");
    assert!(!log.contains("no session is kept any more"), "{log}");
    service.lock(false);
    assert_eq!(service.holds(SERVER).as_deref(), Some("T"), "nobody could take it out");
    assert!(matches!(keyring(places).find().await, Look::Nobody));
    assert!(service.is_empty() && kernel.is_empty(), "and nothing is left of it");
}

#[tokio::test]
async fn a_sign_out_that_is_noted_nowhere_is_not_called_done() {
    let service = Played::new();
    let places = Places::default().with(Kept::Keyring, service.open());
    let (_, held) = keyring(places.clone()).keep(&signed_in("T")).await;
    service.lock(true);
    let log = logged(keyring(places.clone()).forget(&held)).await;
    assert!(log.contains("may be found again") && !log.contains("no session is kept any more"), "{log}");
    service.lock(false);
    let log = logged(keyring(places).forget(&held)).await;
    assert!(log.contains("no session is kept any more"), "{log}");
}

#[tokio::test]
async fn a_note_of_an_old_sign_out_gives_way_to_the_next_guide() {
    let (service, kernel) = (Played::new(), Played::new());
    let places = Places::default().with(Kept::Keyring, service.open()).with(Kept::UntilReboot, kernel.open());
    let (_, held) = keyring(places.clone()).keep(&signed_in("first guide's")).await;
    service.lock(true);
    let running = keyring(places.clone());
    running.latest.store(held.at, Ordering::Relaxed);
    running.forget(&held).await;
    running.keep(&signed_in("second guide's")).await;
    service.lock(false);
    let again = keyring(places);
    assert_eq!(again.find().await.found(), Some((Kept::UntilReboot, "second guide's".to_owned())));
}

#[tokio::test]
async fn the_end_of_one_kiosks_session_leaves_another_kiosks_alone() {
    let place = Played::new();
    let places = Places::default().with(Kept::Keyring, place.open());
    let (_, first) = keyring(places.clone()).keep(&signed_in("first kiosk's")).await;
    let second = keyring(places.clone());
    second.find().await;
    second.keep(&signed_in("second kiosk's")).await;
    keyring(places.clone()).forget(&first).await;
    keyring(places).take_out(&first.token).await;
    assert_eq!(place.holds(SERVER).as_deref(), Some("second kiosk's"));
}

#[tokio::test]
async fn what_is_given_up_is_this_token_alone() {
    let (service, kernel) = (Played::new(), Played::new());
    let places = Places::default().with(Kept::Keyring, service.open()).with(Kept::UntilReboot, kernel.open());
    let keeper = Keeper::new(Some(keyring(places.clone())), Arc::default(), Arc::default());
    keyring(places.clone()).keep(&signed_in("ended")).await;
    let Look::Found(found) = keeper.find().await else { panic!("it was kept") };
    // Another kiosk of the same user signs in while the server is being asked.
    service.lock(true);
    keyring(places).keep(&signed_in("another's")).await;
    service.lock(false);
    keeper.give_up(found).await;
    assert!(service.is_empty());
    assert_eq!(kernel.holds(SERVER).as_deref(), Some("another's"));
}

#[tokio::test]
async fn a_place_without_which_a_session_is_well_kept_is_no_warning() {
    let (service, kernel) = (Played::new(), Played::new());
    kernel.lock(true);
    let keyring = keyring(Places::default().with(Kept::Keyring, service.open()).with(Kept::UntilReboot, kernel.open()));
    let log = logged(async { drop(keyring.keep(&signed_in("T")).await) }).await;
    assert!(log.contains("where the session is kept") && !log.contains("WARN"), "{log}");
    keyring.clear(&keyring.places.0[0], i64::MAX).await.unwrap();
    assert!(matches!(keyring.find().await, Look::Nobody), "the best place tells that nobody is signed in");
}

#[tokio::test]
async fn a_place_that_hangs_is_left_alone_and_what_it_does_later_is_undone() {
    let (hanging, kernel) = (Played::new(), Played::new());
    let (release, wait) = mpsc::channel::<()>();
    let (wait, store) = (std::sync::Mutex::new(wait), hanging.store.clone());
    let places = Places::default()
        .with(Kept::Keyring, move || {
            // Somebody unlocks it long after.
            wait.lock().unwrap().recv().ok();
            Ok(store.clone())
        })
        .with(Kept::UntilReboot, kernel.open());
    let keyring = within(places, Duration::from_millis(50));
    assert_eq!(keyring.keep(&signed_in("T")).await.0, Kept::UntilReboot);
    assert_eq!(kernel.holds(SERVER).as_deref(), Some("T"));
    release.send(()).unwrap();
    drop(keyring);
    // The thread gives the store back at its end.
    let until = std::time::Instant::now() + Duration::from_secs(20);
    while Arc::strong_count(&hanging.store) > 1 {
        assert!(std::time::Instant::now() < until, "the thread never ends");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(hanging.holds(SERVER), None, "who may be signed out by now is not kept");
}

#[tokio::test]
async fn an_entry_that_is_no_session_is_none_and_an_error_tells_nothing_of_it() {
    let place = Played::new();
    place.store.build(SERVICE, SERVER, None).unwrap().set_secret(b"tell-nobody").unwrap();
    let keyring = keyring(Places::default().with(Kept::Keyring, place.open()));
    assert!(keyring.find().await.found().is_none());
    let spoilt = Unusable::Refuses(Error::BadDataFormat(b"tell-nobody".to_vec(), "tell-nobody".into()));
    assert!(!spoilt.to_string().contains("tell-nobody"));
}

/// What the screen is told.
fn heard(screen: &Screen) -> Arc<std::sync::Mutex<Vec<Option<Kept>>>> {
    let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
    let list = heard.clone();
    screen.attach(move |event| {
        if let KioskEvent::Kept { kept } = event {
            list.lock().unwrap().push(kept);
        }
        true
    });
    heard
}

#[tokio::test]
async fn the_keyring_follows_the_session_and_the_screen_hears_how_long_it_is_kept() {
    let place = Played::new();
    let (session, screen) = (Arc::new(Session::default()), Arc::new(Screen::default()));
    let heard = heard(&screen);
    let keyring = keyring(Places::default().with(Kept::Keyring, place.open()));
    let keeper = Keeper::new(Some(keyring), session.clone(), screen);
    session.begin(signed_in("T"));
    keeper.settle().await;
    assert_eq!(place.holds(SERVER).as_deref(), Some("T"));
    keeper.settle().await;
    session.begin(SignedIn { keep: false, ..signed_in("from a link") });
    keeper.settle().await;
    assert_eq!(place.holds(SERVER), None, "who signs in by a link is not found by the next start, nor who was before");
    session.begin(signed_in("T2"));
    session.end();
    keeper.settle().await;
    place.lock(true);
    session.begin(signed_in("T3"));
    keeper.settle().await;
    assert_eq!(*heard.lock().unwrap(), [Some(Kept::Keyring), None, Some(Kept::Memory)]);
}

#[tokio::test]
async fn what_is_kept_stays_until_it_is_known_what_it_is_worth() {
    let place = Played::new();
    let session = Arc::<Session>::default();
    let keeper = || {
        let keyring = keyring(Places::default().with(Kept::Keyring, place.open()));
        Keeper::new(Some(keyring), session.clone(), Arc::default())
    };
    keyring(Places::default().with(Kept::Keyring, place.open())).keep(&signed_in("T")).await;
    keeper().settle().await;
    assert_eq!(place.holds(SERVER).as_deref(), Some("T"), "the app was closed before it could look");
    let keeper = keeper();
    let Look::Found(found) = keeper.find().await else { panic!("it was kept") };
    keeper.settle().await;
    assert_eq!(place.holds(SERVER).as_deref(), Some("T"), "the server is being asked");
    keeper.take_up(found.clone()).await;
    keeper.settle().await;
    assert_eq!(place.holds(SERVER).as_deref(), Some("T"));
    session.end();
    keeper.give_up(found).await;
    assert_eq!(place.holds(SERVER), None);
}
