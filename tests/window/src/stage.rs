//! A display, a window manager and the two browsers' drivers, all of a test's own, and nothing left behind when it ends.

use anyhow::{Context, bail, ensure};
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long anything may take to come about on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Everything that a test runs on.
pub(crate) struct Stage {
    /// The last one started ends first.
    processes: Vec<Process>,
    display: String,
    /// Where the test's files are; gone with it.
    pub(crate) folder: TempDir,
    /// Where its screenshots and logs stay.
    results: PathBuf,
}

impl Stage {
    /// A display with a window manager.
    pub(crate) fn open(name: &str) -> anyhow::Result<Self> {
        let results = target_folder()?.join("window-tests").join(name);
        if results.exists() {
            std::fs::remove_dir_all(&results)?;
        }
        std::fs::create_dir_all(&results)?;
        let mut stage = Self { processes: Vec::new(), display: String::new(), folder: TempDir::new()?, results };
        let mut xvfb = Command::new("Xvfb");
        xvfb.args(["-displayfd", "1", "-screen", "0", "1400x1000x24", "-nolisten", "tcp"]);
        xvfb.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut xvfb = Process::start(xvfb, stage.log("xvfb")?)?;
        // It says its number once it takes connections.
        let said = xvfb.child.stdout.take().context("Xvfb says nothing")?;
        let mut number = String::new();
        BufReader::new(said).read_line(&mut number)?;
        ensure!(!number.trim().is_empty(), "Xvfb does not start");
        stage.display = format!(":{}", number.trim());
        stage.processes.push(xvfb);
        let wm = stage.command("openbox");
        stage.start(wm, "openbox")?;
        Ok(stage)
    }

    /// Opens the kiosk's window, fed by `pictures`.
    pub(crate) async fn kiosk(&mut self, pictures: &Path) -> anyhow::Result<Kiosk> {
        let home = self.folder.path().to_owned();
        self.kiosk_of(&home, pictures).await
    }

    /// The same for a user who has no home, and nowhere to put one.
    pub(crate) async fn kiosk_without_home(&mut self, pictures: &Path) -> anyhow::Result<Kiosk> {
        // Below a file no folder can be made, not even by root.
        self.kiosk_of(Path::new("/dev/null/no-home"), pictures).await
    }

    /// Opens the kiosk's window at a server, for a user with a home and maybe a session bus. `program` stands for the app.
    pub(crate) async fn kiosk_at(
        &mut self,
        server: &str,
        pictures: &Path,
        bus: Option<&str>,
        program: Option<&Path>,
    ) -> anyhow::Result<Kiosk> {
        let app = program.map_or_else(app, |program| Ok(program.to_owned()))?;
        let data = self.folder.path().join("data");
        let mut driver = self.command("WebKitWebDriver");
        driver.env("TAURI_WEBVIEW_AUTOMATION", "true").env("RUST_LOG", "debug");
        for folder in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"] {
            driver.env_remove(folder);
        }
        if let Some(bus) = bus {
            driver.env("DBUS_SESSION_BUS_ADDRESS", bus);
        }
        let port =
            self.driver(driver, "kiosk", |port| vec![format!("--port={port}"), "--host=127.0.0.1".into()]).await?;
        let arguments = ["--server", server, "--windowed", "--data", text(&data)?, "--pictures", text(pictures)?];
        let client = connect(
            port,
            json!({"browserName": "wry", "webkitgtk:browserOptions": {"binary": text(&app)?, "args": arguments}}),
        )
        .await?;
        let kiosk = Kiosk { client, data, pages: Vec::new() };
        kiosk.watch().await?;
        Ok(kiosk)
    }

    /// Kills what was started last, and everything that it has started: no time to put anything in order.
    pub(crate) fn kill_last(&mut self) {
        self.processes.pop();
    }

    /// Waits until the program of this name has said this in its log, and gives all that it has said.
    pub(crate) async fn logged(&self, name: &str, what: &str) -> anyhow::Result<String> {
        let log = self.results.join(format!("{name}.log"));
        wait(what, || Ok(std::fs::read_to_string(&log).ok().filter(|text| text.contains(what)))).await
    }

    /// Everything that is written anywhere: by the app, its web view and its drivers, logs among it.
    pub(crate) fn written(&self) -> anyhow::Result<Vec<(PathBuf, Vec<u8>)>> {
        let (mut folders, mut files) = (vec![self.folder.path().to_owned(), self.results.clone()], Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder)? {
                let entry = entry?;
                let kind = entry.file_type()?;
                if kind.is_dir() {
                    folders.push(entry.path());
                } else if kind.is_file() {
                    files.push((entry.path(), std::fs::read(entry.path())?));
                }
            }
        }
        Ok(files)
    }

    async fn kiosk_of(&mut self, home: &Path, pictures: &Path) -> anyhow::Result<Kiosk> {
        let app = app()?;
        let said = self.said("kiosk");
        let data = self.folder.path().join("data");
        let mut driver = self.command("WebKitWebDriver");
        driver.env("TAURI_WEBVIEW_AUTOMATION", "true").env("HOME", home);
        for folder in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"] {
            driver.env_remove(folder);
        }
        let port =
            self.driver(driver, "kiosk", |port| vec![format!("--port={port}"), "--host=127.0.0.1".into()]).await?;
        let arguments = ["--demo", "--data", text(&data)?, "--pictures", text(pictures)?];
        let client = connect(
            port,
            json!({"browserName": "wry", "webkitgtk:browserOptions": {"binary": text(&app)?, "args": arguments}}),
        )
        .await?;
        let pages = wait("the kiosk says where to look", || {
            let said = std::fs::read_to_string(&said).unwrap_or_default();
            let complete = said.ends_with('\n') && said.lines().any(|line| line.starts_with("visitor page of "));
            Ok(complete.then(|| visitor_pages(&said)))
        })
        .await?;
        let kiosk = Kiosk { client, data, pages };
        kiosk.watch().await?;
        Ok(kiosk)
    }

    /// A visitor's phone.
    pub(crate) async fn phone(&mut self) -> anyhow::Result<Phone> {
        let driver = self.command("chromedriver");
        let port = self.driver(driver, "phone", |port| vec![format!("--port={port}")]).await?;
        let profile = self.folder.path().join("phone");
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--no-first-run",
            "--disable-gpu",
            "--hide-scrollbars",
            "--window-size=412,915",
            &format!("--user-data-dir={}", text(&profile)?),
        ];
        let client = connect(port, json!({"goog:chromeOptions": {"args": arguments}})).await?;
        Ok(Phone { client })
    }

    /// Keeps a screenshot of the page.
    pub(crate) async fn keep(&self, client: &Client, name: &str) -> anyhow::Result<()> {
        // What is drawn lags what is there.
        client
            .execute_async(
                "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()));",
                vec![],
            )
            .await?;
        std::fs::write(self.results.join(format!("{name}.png")), client.screenshot().await?)?;
        Ok(())
    }

    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .stdin(Stdio::null())
            .env("DISPLAY", &self.display)
            .env_remove("WAYLAND_DISPLAY")
            .env("HOME", self.folder.path())
            .env("TMPDIR", self.folder.path())
            // No session bus, and none is to be started: it would outlive the test. A kiosk's bare user has none either.
            .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
            .env("NO_AT_BRIDGE", "1");
        command
    }

    async fn driver(
        &mut self,
        mut driver: Command,
        name: &str,
        arguments: impl Fn(u16) -> Vec<String>,
    ) -> anyhow::Result<u16> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        driver.args(arguments(port));
        self.start(driver, name)?;
        wait("the driver answers", || Ok(std::net::TcpStream::connect(("127.0.0.1", port)).ok())).await?;
        Ok(port)
    }

    pub(crate) fn start(&mut self, mut command: Command, name: &str) -> anyhow::Result<()> {
        command.stdout(File::create(self.said(name))?);
        let log = self.log(name)?;
        self.processes.push(Process::start(command, log)?);
        Ok(())
    }

    /// What a process wrote to standard output. It may hold links that sign in, so it goes with the test.
    pub(crate) fn said(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}-said"))
    }

    fn log(&self, name: &str) -> anyhow::Result<File> {
        // A program that is started again goes on where it was.
        Ok(File::options().create(true).append(true).open(self.results.join(format!("{name}.log")))?)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        while let Some(process) = self.processes.pop() {
            drop(process);
        }
    }
}

/// A process and everything that it starts.
struct Process {
    child: Child,
}

impl Process {
    fn start(mut command: Command, log: File) -> anyhow::Result<Self> {
        let name = command.get_program().to_owned();
        command.stderr(log).process_group(0);
        let child = command.spawn().with_context(|| format!("{} cannot be started", name.display()))?;
        Ok(Self { child })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A browser makes groups of its own, so its descendants are looked up before their parent goes.
        let root = self.child.id();
        let mut kill = Command::new("kill");
        kill.args(["-KILL", "--", &format!("-{root}")]);
        for process in descendants(root) {
            kill.arg(process.to_string());
        }
        let _ = kill.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        let _ = self.child.wait();
    }
}

/// Every process below this one.
fn descendants(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        // `pid (name) state ppid …`, and the name may hold anything.
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)).and_then(|id| id.parse().ok());
        if let Some(parent) = parent {
            children.entry(parent).or_default().push(process);
        }
    }
    let mut found = Vec::new();
    let mut next = vec![root];
    while let Some(process) = next.pop() {
        let below = children.remove(&process).unwrap_or_default();
        found.extend(&below);
        next.extend(below);
    }
    found
}

/// The kiosk's window.
pub(crate) struct Kiosk {
    /// Its page.
    pub(crate) client: Client,
    /// Where its database is.
    data: PathBuf,
    /// The visitors' pages that it printed: order number and one-time link.
    pages: Vec<(String, String)>,
}

/// What the window showed.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    /// The screen's state.
    pub(crate) state: String,
    /// The texts of the answer by their names.
    texts: Map<String, Value>,
}

impl Shown {
    /// A text of the answer; empty where there is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.texts.get(name).and_then(Value::as_str).unwrap_or_default()
    }
}

/// Notes every screen with its answer, so that one that stands for two seconds is not missed between two looks.
const WATCH: &str = r#"
    window.__shown = [];
    let last = "";
    const note = () => {
        const kiosk = document.querySelector("[data-testid=kiosk]");
        if (!kiosk) return;
        const texts = {};
        for (const part of document.querySelectorAll("[data-testid^=answer-]")) {
            texts[part.dataset.testid.slice("answer-".length)] = part.textContent.trim();
        }
        const now = { state: kiosk.dataset.state, texts };
        if (JSON.stringify(now) !== last) {
            last = JSON.stringify(now);
            window.__shown.push(now);
        }
    };
    new MutationObserver(note).observe(document, {
        subtree: true, childList: true, attributes: true, characterData: true,
    });
    note();
"#;

impl Kiosk {
    async fn watch(&self) -> anyhow::Result<()> {
        self.client.execute(WATCH, vec![]).await?;
        Ok(())
    }

    /// Touches what has this test id, once it is there.
    pub(crate) async fn click(&self, testid: &str) -> anyhow::Result<()> {
        let css = format!("[data-testid='{testid}']");
        self.client.wait().for_element(Locator::Css(&css)).await?.click().await?;
        Ok(())
    }

    /// The text of what has this test id, once it is there.
    pub(crate) async fn text(&self, testid: &str) -> anyhow::Result<String> {
        let css = format!("[data-testid='{testid}']");
        let element = self.client.wait().for_element(Locator::Css(&css)).await?;
        // As it stands in the page: what is not drawn yet has no text for WebDriver.
        Ok(element.prop("textContent").await?.unwrap_or_default().trim().to_owned())
    }

    /// The one-time link that was printed for this order.
    pub(crate) fn visitor_page(&self, order_no: &str) -> anyhow::Result<&str> {
        let page = self.pages.iter().find(|(order, _)| order == order_no).map(|(_, link)| link.as_str());
        page.with_context(|| format!("no visitor's page was printed for {order_no}"))
    }

    /// The orders with a visitor's page, in the order in which they were printed.
    pub(crate) fn orders(&self) -> Vec<String> {
        self.pages.iter().map(|(order, _)| order.clone()).collect()
    }

    /// Everything shown so far.
    pub(crate) async fn shown(&self) -> anyhow::Result<Vec<Shown>> {
        let shown = self.client.execute("return window.__shown", vec![]).await?;
        let shown = shown.as_array().context("the page has been replaced")?;
        Ok(shown
            .iter()
            .map(|one| Shown {
                state: one["state"].as_str().unwrap_or_default().to_owned(),
                texts: one["texts"].as_object().cloned().unwrap_or_default(),
            })
            .collect())
    }

    /// Waits until a screen of this state is shown, among those after the first `seen` ones.
    pub(crate) async fn shows(&self, state: &str, seen: usize) -> anyhow::Result<Shown> {
        let until = Instant::now() + LIMIT;
        loop {
            let shown = self.shown().await?;
            if let Some(found) = shown.iter().skip(seen).find(|one| one.state == state) {
                return Ok(found.clone());
            }
            if Instant::now() > until {
                let states: Vec<_> = shown.iter().map(|one| one.state.as_str()).collect();
                bail!("the window never showed {state:?}; it showed {states:?}");
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The status of an order and its audit in the database: results, oldest first.
    pub(crate) async fn in_database(&self, order_no: &str) -> anyhow::Result<InDatabase> {
        let options =
            sqlx::sqlite::SqliteConnectOptions::new().filename(self.data.join("guidepost.db")).read_only(true);
        let database = sqlx::SqlitePool::connect_with(options).await?;
        let (status, visitor_name, party_size) =
            sqlx::query_as("SELECT status, visitor_name, party_size FROM booking_order WHERE order_no = ?")
                .bind(order_no)
                .fetch_one(&database)
                .await?;
        let audit = sqlx::query_as(
            "SELECT r.result, r.entry FROM redemption r JOIN booking_order o ON o.id = r.order_id
             WHERE o.order_no = ? ORDER BY r.id",
        )
        .bind(order_no)
        .fetch_all(&database)
        .await?;
        database.close().await;
        Ok(InDatabase { status, visitor_name, party_size, audit })
    }
}

/// What the database says of an order.
#[derive(Debug, PartialEq)]
pub(crate) struct InDatabase {
    pub(crate) status: String,
    pub(crate) visitor_name: String,
    pub(crate) party_size: i64,
    /// Result and entry of each attempt.
    pub(crate) audit: Vec<(i64, Option<String>)>,
}

/// A visitor's phone.
pub(crate) struct Phone {
    /// Its browser.
    pub(crate) client: Client,
}

impl Phone {
    /// Opens the visitor's page and waits until it shows a code; gives a picture of it and the six digits.
    pub(crate) async fn open(&self, link: &str) -> anyhow::Result<(Vec<u8>, String)> {
        self.client.goto(link).await?;
        let digits = "return document.querySelector('[data-testid=digits]')?.textContent ?? ''";
        let until = Instant::now() + LIMIT;
        let digits = loop {
            let digits = self.client.execute(digits, vec![]).await?;
            let digits = digits.as_str().unwrap_or_default().trim().to_owned();
            if digits.len() == 6 {
                break digits;
            }
            ensure!(Instant::now() < until, "the visitor's page never showed a code");
            tokio::time::sleep(LOOK).await;
        };
        self.client
            .execute_async(
                "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()));",
                vec![],
            )
            .await?;
        Ok((self.client.screenshot().await?, digits))
    }
}

/// The folder that stands for the camera: one picture at a time is held before it.
pub(crate) struct Camera {
    folder: PathBuf,
}

impl Camera {
    /// A camera that sees an empty desk.
    pub(crate) fn new(stage: &Stage) -> anyhow::Result<Self> {
        let camera = Self { folder: stage.folder.path().join("camera") };
        std::fs::create_dir(&camera.folder)?;
        camera.sees_nothing()?;
        Ok(camera)
    }

    /// Its folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Holds a picture before it.
    pub(crate) fn sees(&self, png: &[u8]) -> anyhow::Result<()> {
        // Moved into place, so that half a picture is never seen.
        let new = self.folder.join("picture.new");
        std::fs::write(&new, png)?;
        std::fs::rename(new, self.folder.join("picture.png"))?;
        Ok(())
    }

    /// Takes it away.
    pub(crate) fn sees_nothing(&self) -> anyhow::Result<()> {
        self.sees(&png(&image::GrayImage::from_pixel(640, 480, image::Luma([90])))?)
    }

    /// Holds a code before it that says something of its own.
    pub(crate) fn sees_code(&self, text: &str) -> anyhow::Result<()> {
        let code = qrcodegen::QrCode::encode_text(text, qrcodegen::QrCodeEcc::Medium)?;
        let (module, quiet) = (8, 4);
        let side = u32::try_from(code.size())? + 2 * quiet;
        let picture = image::GrayImage::from_fn(side * module, side * module, |x, y| {
            let place = |at: u32| i32::try_from(at / module).unwrap_or(0) - i32::try_from(quiet).unwrap_or(0);
            image::Luma([if code.get_module(place(x), place(y)) { 0 } else { 255 }])
        });
        self.sees(&png(&picture)?)
    }
}

fn png(picture: &image::GrayImage) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    picture.write_to(&mut std::io::Cursor::new(&mut bytes), image::ImageFormat::Png)?;
    Ok(bytes)
}

/// Waits until there is something.
pub(crate) async fn wait<T>(what: &str, mut look: impl FnMut() -> anyhow::Result<Option<T>>) -> anyhow::Result<T> {
    let until = Instant::now() + LIMIT;
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        ensure!(Instant::now() < until, "waited in vain: {what}");
        tokio::time::sleep(LOOK).await;
    }
}

async fn connect(port: u16, capabilities: Value) -> anyhow::Result<Client> {
    let Value::Object(capabilities) = capabilities else { bail!("capabilities are an object") };
    let client = ClientBuilder::new(HttpConnector::new())
        .capabilities(capabilities)
        .connect(&format!("http://127.0.0.1:{port}"))
        .await?;
    Ok(client)
}

/// `visitor page of NAME, order NO: URL` lines.
fn visitor_pages(said: &str) -> Vec<(String, String)> {
    said.lines()
        .filter_map(|line| line.strip_prefix("visitor page of ")?.split_once(", order ")?.1.split_once(": "))
        .map(|(order, link)| (order.to_owned(), link.to_owned()))
        .collect()
}

/// The app: `GUIDEPOST_APP_BIN`, or the one that was built beside this test.
pub(crate) fn app() -> anyhow::Result<PathBuf> {
    let app = match std::env::var_os("GUIDEPOST_APP_BIN") {
        Some(app) => PathBuf::from(app),
        None => target_folder()?.join("debug/guidepost"),
    };
    ensure!(app.is_file(), "{} is not there; build it first: npm run build && cargo build -p guidepost", app.display());
    Ok(app.canonicalize()?)
}

/// `target`, from where this test lies: `target/PROFILE/deps/window-HASH`.
fn target_folder() -> anyhow::Result<PathBuf> {
    let test = std::env::current_exe()?;
    Ok(test.ancestors().nth(3).context("the test lies outside a target folder")?.to_owned())
}

pub(crate) fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().with_context(|| format!("{} is no text", path.display()))
}
