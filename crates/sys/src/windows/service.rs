//! The agent as a service of Windows, which starts with the system and needs no user.

use crate::{Error, private};
use std::env;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::os::windows::io::IntoRawHandle as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use windows_service::service::{
    ServiceAccess, ServiceAction, ServiceActionType, ServiceControl, ServiceControlAccept, ServiceErrorControl,
    ServiceExitCode, ServiceFailureActions, ServiceFailureResetPeriod, ServiceInfo, ServiceStartType, ServiceState,
    ServiceStatus, ServiceType,
};
use windows_service::service_control_handler::{self, ServiceControlHandlerResult, ServiceStatusHandle};
use windows_service::service_manager::{ServiceManager, ServiceManagerAccess};
use windows_service::{define_windows_service, service_dispatcher};
use windows_sys::Win32::System::Console::{STD_ERROR_HANDLE, STD_OUTPUT_HANDLE, SetStdHandle};

/// Name of the service.
const NAME: &str = "linerate-agent";
const DISPLAY_NAME: &str = "linerate agent";
const DESCRIPTION: &str = "Lets other machines measure to and from this machine";
/// Account with the rights of an ordinary user on this host, and none elsewhere.
const ACCOUNT: &str = r"NT AUTHORITY\LocalService";
/// File of [`folder`] with what the service prints.
const LOG: &str = "agent.log";
/// Longest time until a service has ended.
const END_TIMEOUT: Duration = Duration::from_secs(30);
/// Time that the service may take to end after it was asked to.
const STOP_HINT: Duration = Duration::from_secs(20);
/// Pause before a service that failed is started again, and time after which a failure is forgotten.
const RESTART: Duration = Duration::from_secs(5);
const FAILURES_FORGOTTEN: Duration = Duration::from_secs(86_400);

/// Body of the service, from [`run`] until the system calls it.
static BODY: Mutex<Option<Box<dyn FnOnce() -> u8 + Send>>> = Mutex::new(None);
/// Request of the system to stop the service.
static STOP: Notify = Notify::const_new();

/// Returns the folder for the files of the service. `None` if the system names no folder for programs' data. The service gets it as an argument,
/// because it may have other variables.
pub fn folder() -> Option<PathBuf> {
    Some(PathBuf::from(env::var_os("ProgramData")?).join(NAME))
}

/// Installs this program as a service with `arguments`, and starts it.
///
/// # Errors
/// The service exists, or this user is no administrator (ERROR_ACCESS_DENIED).
pub fn install(arguments: &[OsString]) -> Result<(), Error> {
    let program = env::current_exe().map_err(|source| Error::new("GetModuleFileName", "this program", source))?;
    let manager = manager(ServiceManagerAccess::CONNECT | ServiceManagerAccess::CREATE_SERVICE)?;
    let info = ServiceInfo {
        name: NAME.into(),
        display_name: DISPLAY_NAME.into(),
        service_type: ServiceType::OWN_PROCESS,
        start_type: ServiceStartType::AutoStart,
        error_control: ServiceErrorControl::Normal,
        executable_path: program,
        launch_arguments: arguments.to_vec(),
        dependencies: Vec::new(),
        account_name: Some(ACCOUNT.into()),
        account_password: None,
    };
    let access = ServiceAccess::CHANGE_CONFIG | ServiceAccess::START;
    let service = manager.create_service(&info, access).map_err(|error| failed("CreateService", error))?;
    // Comfort only: a system that refuses it (Wine 8.0) runs the service all the same.
    let _ = service.set_description(DESCRIPTION);
    let _ = service.update_failure_actions(ServiceFailureActions {
        reset_period: ServiceFailureResetPeriod::After(FAILURES_FORGOTTEN),
        reboot_msg: None,
        command: None,
        actions: Some(vec![ServiceAction { action_type: ServiceActionType::Restart, delay: RESTART }]),
    });
    service.start::<OsString>(&[]).map_err(|error| failed("StartService", error))
}

/// Stops the service and removes it.
///
/// # Errors
/// There is no such service, this user is no administrator, or the service does not end.
pub fn remove() -> Result<(), Error> {
    let access = ServiceAccess::QUERY_STATUS | ServiceAccess::STOP | ServiceAccess::DELETE;
    let service = manager(ServiceManagerAccess::CONNECT)?.open_service(NAME, access);
    let service = service.map_err(|error| failed("OpenService", error))?;
    let state = || service.query_status().map(|status| status.current_state);
    let state = || state().map_err(|error| failed("QueryServiceStatus", error));
    if state()? != ServiceState::Stopped {
        // It may be ending already.
        let _ = service.stop();
    }
    let begun = Instant::now();
    while state()? != ServiceState::Stopped {
        if begun.elapsed() > END_TIMEOUT {
            return Err(Error::new("ControlService", NAME, io::ErrorKind::TimedOut));
        }
        thread::sleep(Duration::from_millis(100));
    }
    service.delete().map_err(|error| failed("DeleteService", error))
}

/// Runs `body` as the service, with its standard output and standard error in the log of `folder`. Requests to stop come by
/// [`crate::interrupt::StopRequests`]. The body returns an exit code.
///
/// # Errors
/// The system did not start this process as a service.
pub fn run(folder: &Path, body: impl FnOnce() -> u8 + Send + 'static) -> Result<(), Error> {
    let folder = folder.to_owned();
    let logged = move || if log(&folder).is_ok() { body() } else { 1 };
    *BODY.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(logged));
    service_dispatcher::start(NAME, service_main).map_err(|error| failed("StartServiceCtrlDispatcher", error))
}

/// Waits for a request of the system to stop the service. It does not come if this process is no service.
pub(super) async fn stopped() {
    STOP.notified().await;
}

define_windows_service!(service_main, serve);

/// Main function of the service. What fails here can only be seen in the state of the service.
fn serve(_arguments: Vec<OsString>) {
    let handler = |control| match control {
        ServiceControl::Stop | ServiceControl::Shutdown => {
            STOP.notify_one();
            ServiceControlHandlerResult::NoError
        }
        ServiceControl::Interrogate => ServiceControlHandlerResult::NoError,
        _ => ServiceControlHandlerResult::NotImplemented,
    };
    let Ok(status) = service_control_handler::register(NAME, handler) else { return };
    let body = BODY.lock().unwrap_or_else(PoisonError::into_inner).take();
    report(status, ServiceState::Running, 0);
    let code = body.map_or(1, |body| body());
    report(status, ServiceState::Stopped, code);
}

/// Redirects the standard output and standard error of this process to the log in `folder`.
fn log(folder: &Path) -> io::Result<()> {
    private::make_folder(folder).map_err(io::Error::other)?;
    for stream in [STD_OUTPUT_HANDLE, STD_ERROR_HANDLE] {
        let file = OpenOptions::new().create(true).append(true).open(folder.join(LOG))?;
        // SAFETY: the handle is open, and stays open until this process ends.
        unsafe { SetStdHandle(stream, file.into_raw_handle()) };
    }
    Ok(())
}

fn report(status: ServiceStatusHandle, state: ServiceState, code: u8) {
    let controls_accepted = if state == ServiceState::Running {
        ServiceControlAccept::STOP | ServiceControlAccept::SHUTDOWN
    } else {
        ServiceControlAccept::empty()
    };
    // The manager may have ended.
    let _ = status.set_service_status(ServiceStatus {
        service_type: ServiceType::OWN_PROCESS,
        current_state: state,
        controls_accepted,
        exit_code: if code == 0 { ServiceExitCode::NO_ERROR } else { ServiceExitCode::ServiceSpecific(code.into()) },
        checkpoint: 0,
        wait_hint: STOP_HINT,
        process_id: None,
    });
}

fn manager(access: ServiceManagerAccess) -> Result<ServiceManager, Error> {
    ServiceManager::local_computer(None::<&str>, access).map_err(|error| failed("OpenSCManager", error))
}

fn failed(call: &'static str, error: windows_service::Error) -> Error {
    let source = match error {
        windows_service::Error::Winapi(source) => source,
        other => io::Error::other(other),
    };
    Error::new(call, format!("service {NAME}"), source)
}
