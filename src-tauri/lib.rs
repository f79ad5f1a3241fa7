//! The kiosk.
