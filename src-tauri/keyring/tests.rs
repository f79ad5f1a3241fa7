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
        Some(serde_json::from_slice::<Stored>(&bytes).unwrap().token.expose().to_owned())
    }
}

fn keyring(places: Places) -> Keyring {
    Keyring { places, server: SERVER.to_owned(), limit: Duration::from_secs(20) }
}

#[tokio::test]
async fn a_session_is_found_again_until_it_is_forgotten_and_by_its_own_server_alone() {
    let place = Played::new();
    let places = Places::default().with(Kept::Keyring, place.open());
    assert!(keyring(places.clone()).find().await.is_none());
    assert_eq!(keyring(places.clone()).keep(&signed_in("T")).await, Kept::Keyring);
    let (kept, found) = keyring(places.clone()).find().await.unwrap();
    assert_eq!((kept, found.token.expose(), found.guide.as_str()), (Kept::Keyring, "T", "李娜"));
    let another = Keyring::new(places.clone(), "http://desk.example".to_owned());
    assert!(another.find().await.is_none(), "another server's token is nobody else's");
    another.forget().await;
    assert!(keyring(places.clone()).find().await.is_some());
    keyring(places.clone()).forget().await;
    assert!(keyring(places).find().await.is_none());
}

#[tokio::test]
async fn the_next_place_takes_what_a_locked_one_does_not_and_gives_it_up_later() {
    let (service, kernel) = (Played::new(), Played::new());
    service.lock(true);
    let keyring = keyring(Places::default().with(Kept::Keyring, service.open()).with(Kept::UntilReboot, kernel.open()));
    assert_eq!(keyring.keep(&signed_in("old")).await, Kept::UntilReboot);
    assert_eq!(keyring.find().await.unwrap().0, Kept::UntilReboot);
    service.lock(false);
    assert_eq!(keyring.keep(&signed_in("new")).await, Kept::Keyring);
    assert_eq!(kernel.holds(SERVER), None, "an old session must not come to light again");
    service.lock(true);
    kernel.lock(true);
    assert_eq!(keyring.keep(&signed_in("newest")).await, Kept::Memory);
    assert!(keyring.find().await.is_none());
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
    let keyring = Keyring { places, server: SERVER.to_owned(), limit: Duration::from_millis(50) };
    assert_eq!(keyring.keep(&signed_in("T")).await, Kept::UntilReboot);
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
    assert!(keyring.find().await.is_none());
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
    let (kept, found) = keeper.find().await.unwrap();
    keeper.settle().await;
    assert_eq!(place.holds(SERVER).as_deref(), Some("T"), "the server is being asked");
    keeper.take_up(kept, found.clone()).await;
    keeper.settle().await;
    assert_eq!(place.holds(SERVER).as_deref(), Some("T"));
    session.end();
    keeper.give_up(found).await;
    assert_eq!(place.holds(SERVER), None);
}
