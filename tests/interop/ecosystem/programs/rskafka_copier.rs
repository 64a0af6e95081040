//! Copies a topic with rskafka, which has no groups: the position of each partition is in a file,
//! written after the copies are acknowledged.

use std::{collections::BTreeMap, env, error::Error, fs, time::Duration};

use chrono::Utc;
use rskafka::client::partition::{Compression, PartitionClient, UnknownTopicHandling};
use rskafka::client::ClientBuilder;
use rskafka::record::Record;

const PARTITIONS: i32 = 4;

async fn step(
    partition: i32,
    from: &PartitionClient,
    to: &PartitionClient,
) -> Result<(), Box<dyn Error>> {
    let path = format!("position-{partition}");
    let position: i64 = fs::read_to_string(&path).unwrap_or("0".into()).parse()?;
    let (records, _) = from.fetch_records(position, 1..1_000_000, 500).await?;
    let Some(last) = records.last() else {
        return Ok(());
    };
    let next = last.offset + 1;
    let copies = records
        .into_iter()
        .map(|found| Record {
            key: None,
            value: found.record.value,
            headers: BTreeMap::new(),
            timestamp: Utc::now(),
        })
        .collect();
    to.produce(copies, Compression::NoCompression).await?;
    fs::write(format!("{path}.new"), next.to_string())?;
    fs::rename(format!("{path}.new"), path)?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let client = ClientBuilder::new(vec![arguments[0].clone()]).build().await?;
    let retry = UnknownTopicHandling::Retry;
    let mut pairs = Vec::new();
    for partition in 0..PARTITIONS {
        let from = client.partition_client(&arguments[1], partition, retry).await?;
        let to = client.partition_client(&arguments[2], partition, retry).await?;
        pairs.push((partition, from, to));
    }
    loop {
        for (partition, from, to) in &pairs {
            if let Err(error) = step(*partition, from, to).await {
                eprintln!("partition {partition}: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}
